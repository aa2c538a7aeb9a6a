#error "cooperative groups are not emulated"
