// A library that is loaded with RTLD_DEEPBIND looks names up in itself and in the libraries that it
// needs first. Its malloc and free would be the C library's, which cannot free blocks of the pool
// that the program passes to it. So the flag is left out.

#include <tensorpool/export.hpp>

#include "interpose/next_call.hpp"

namespace tensorpool::interpose {
namespace {

constinit Next<platform::Dlopen> next_dlopen{"dlopen"};

[[maybe_unused]] const bool finds_early = (next_dlopen.get(), true);

}  // namespace
}  // namespace tensorpool::interpose

extern "C" {

// Must be a tail call: the loader looks at the return address to find out which library calls, and
// searches the folders of that library.
#ifdef __clang__
TENSORPOOL_API void* dlopen(const char* file, int mode) noexcept {
    [[clang::musttail]] return tensorpool::interpose::next_dlopen.get()(file,
                                                                        mode & ~RTLD_DEEPBIND);
}
#else
[[gnu::optimize("O2")]] TENSORPOOL_API void* dlopen(const char* file, int mode) noexcept {
    return tensorpool::interpose::next_dlopen.get()(file, mode & ~RTLD_DEEPBIND);
}
#endif
}
