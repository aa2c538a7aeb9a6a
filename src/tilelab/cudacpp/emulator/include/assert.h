// A failed assertion says its line and thread. Read again at each #include, as C has it: NDEBUG may have changed.
#undef assert
#ifdef NDEBUG
#define assert(condition) ((void)0)
#else
#define assert(condition) ((condition) ? (void)0 : tilelab_assert(__LINE__, #condition))
#endif
