// A program that replaces some operators by others that call the library's, as tracers do. Its
// frees match, so nothing may be reported.

#include <dlfcn.h>

#include <cstdlib>
#include <new>

#include "interpose/interposed.hpp"

namespace {

using namespace tensorpool::testing;

unsigned long calls = 0;

template <class Function>
Function* next(const char* name) {
    ++calls;
    return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

void* operator new(std::size_t bytes) {
    return next<void*(std::size_t)>("_Znwm")(bytes + 8);
}
void operator delete(void* p) noexcept {
    next<void(void*)>("_ZdlPv")(p);
}

int main() {
    expect_interposed();
    for (const std::size_t bytes : {1, 100, 70'000, 2'000'000}) {
        ::operator delete(hidden(::operator new(bytes)));
        ::operator delete(hidden(::operator new(bytes)), bytes);
        ::operator delete[](hidden(::operator new[](bytes)));
        ::operator delete[](hidden(::operator new[](bytes)), bytes);
        ::operator delete(hidden(::operator new(bytes, std::nothrow)));
        ::operator delete[](hidden(::operator new[](bytes, std::align_val_t{4096})),
                            std::align_val_t{4096});
        std::free(hidden(std::malloc(bytes)));
    }
    expect(calls > 30, "calls of the program's operators", calls);
    return failures == 0 ? 0 : 1;
}
