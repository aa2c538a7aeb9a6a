"""Pictures of layouts, banks, traffic and rooflines."""
