// Linked into each test program by tests/coverage/measure, with --wrap=abort,--wrap=_exit: a
// process that stops without running exit handlers writes its counts first.
extern "C" {
void __gcov_dump();
[[noreturn]] void __real_abort();
[[noreturn]] void __real__exit(int status);

[[noreturn]] void __wrap_abort() {
    __gcov_dump();
    __real_abort();
}

[[noreturn]] void __wrap__exit(int status) {
    __gcov_dump();
    __real__exit(status);
}
}
