// Checks::hardened for malloc: a request for 0 bytes gets a block of its own that may not be
// touched, a sized delete or free must state what was requested, and the function that frees must
// belong to the one that allocated.

#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <set>
#include <string>

#include "interpose/interposed.hpp"

namespace {

using namespace tensorpool::testing;

void* take_nothing(unsigned which) {
    const std::size_t none = hidden(std::size_t{0});
    void* p = nullptr;
    switch (which % 4) {
        case 0:
            return std::malloc(none);
        case 1:
            return std::calloc(none, 8);
        case 2:
            return std::realloc(nullptr, none);
        default:
            return posix_memalign(&p, 8192, none) == 0 ? p : nullptr;
    }
}

void expect_blocks_of_their_own() {
    std::set<void*> blocks;
    for (unsigned i = 0; i != 1000; ++i) {
        void* const p = take_nothing(i);
        expect(p != nullptr && is_of_pool(p), "a block of the pool", i);
        expect(blocks.insert(p).second, "a block of its own", i);
        expect(malloc_usable_size(p) == 0, "no usable byte", i);
        expect(reinterpret_cast<std::uintptr_t>(p) % (i % 4 == 3 ? 8192 : 16) == 0, "alignment", i);
    }
    for (void* const p : blocks) std::free(p);
    // The freed ones are used again.
    for (unsigned i = 0; i != 20'000; ++i) {
        void* const p = take_nothing(i);
        expect(p != nullptr && is_of_pool(p), "a block of the pool", i);
        std::free(p);
    }
}

void expect_growth() {
    auto* const p = static_cast<char*>(std::realloc(take_nothing(0), hidden(std::size_t{5000})));
    expect(p != nullptr && malloc_usable_size(p) >= 5000, "a longer block");
    fill(p, 5000, 1);
    expect(is_filled(p, 5000, 1), "the content");
    std::free(p);
}

/// Expects that a child which calls `function` is stopped with a report of this kind.
template <class Function>
void expect_stop(const char* kind, Function function) {
    int ends[2];
    if (pipe(ends) != 0) return expect(false, "a pipe");
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        function();
        _exit(0);
    }
    close(ends[1]);
    std::string report;
    char part[512];
    for (ssize_t n = 0; (n = read(ends[0], part, sizeof part)) > 0;) {
        report.append(part, static_cast<std::size_t>(n));
    }
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, kind);
    expect(report.find(std::string("tensorpool: fatal: ") + kind + " ") == 0, report.c_str());
}

void expect_sized_frees() {
    namespace testing = tensorpool::testing;
    for (const std::size_t bytes : {0, 1, 100, 70'000, 2'000'000}) {
        testing::free_sized(hidden(std::malloc(bytes)), bytes);
        testing::free_sized(hidden(std::calloc(bytes, 1)), bytes);
        testing::free_aligned_sized(hidden(aligned_alloc(256, bytes)), 256, bytes);
    }
    // Also after each realloc.
    const std::size_t sizes[] = {100, 90, 5000, 70'000, 69'999, 2'000'000, 1'500'000, 3'000'000};
    for (const std::size_t from : sizes) {
        for (const std::size_t to : sizes) {
            testing::free_sized(std::realloc(hidden(std::malloc(from)), to), to);
        }
    }
    // A block that realloc keeps may have been aligned.
    for (const std::size_t bytes : {std::size_t{100}, std::size_t{4} << 20}) {
        testing::free_sized(std::realloc(hidden(aligned_alloc(4096, bytes)), bytes), bytes);
    }
    expect_stop("wrong-size", [] { testing::free_sized(hidden(std::malloc(100)), 99); });
    expect_stop("wrong-size", [] { testing::free_sized(hidden(std::malloc(0)), 1); });
    expect_stop("wrong-size",
                [] { testing::free_sized(std::realloc(hidden(std::malloc(100)), 90), 100); });
    expect_stop("wrong-size", [] {
        testing::free_aligned_sized(hidden(aligned_alloc(4096, 70'000)), 4096, 69'999);
    });
    expect_stop("wrong-size", [] { testing::free_sized(hidden(std::malloc(5 << 20)), 1 << 20); });
    expect_stop("double-free", [] {
        void* const p = std::malloc(2'000'000);
        testing::free_sized(hidden(p), 2'000'000);
        testing::free_sized(hidden(p), 2'000'000);
    });
}

/// Allocates and frees in each way that the language allows, of which none may be reported.
void expect_matching_frees() {
    constexpr std::align_val_t page{4096};
    for (const std::size_t bytes : {0, 1, 100, 70'000, 2'000'000}) {
        ::operator delete(hidden(::operator new(bytes)));
        ::operator delete(hidden(::operator new(bytes)), std::nothrow);
        ::operator delete(hidden(::operator new(bytes, std::nothrow)), bytes);
        ::operator delete(hidden(::operator new(bytes, page)), page);
        ::operator delete(hidden(::operator new(bytes, page, std::nothrow)), bytes, page);
        ::operator delete(hidden(::operator new(bytes, page)), page, std::nothrow);
        ::operator delete[](hidden(::operator new[](bytes)));
        ::operator delete[](hidden(::operator new[](bytes)), bytes);
        ::operator delete[](hidden(::operator new[](bytes, std::nothrow)), std::nothrow);
        ::operator delete[](hidden(::operator new[](bytes, page)), page);
        ::operator delete[](hidden(::operator new[](bytes, page, std::nothrow)), bytes, page);
        ::operator delete[](hidden(::operator new[](bytes, page)), page, std::nothrow);
        std::free(hidden(std::realloc(std::malloc(bytes), bytes + 1)));
        std::free(hidden(reallocarray(nullptr, 3, bytes)));
        std::free(hidden(aligned_alloc(4096, bytes)));
        std::free(hidden(valloc(bytes)));
    }
}

void expect_mismatched_frees() {
    expect_stop("mismatched-free", [] { std::free(hidden(::operator new(100))); });
    expect_stop("mismatched-free", [] { std::free(hidden(::operator new[](2'000'000))); });
    expect_stop("mismatched-free", [] { ::operator delete(hidden(std::malloc(100))); });
    expect_stop("mismatched-free", [] { ::operator delete[](hidden(std::calloc(1, 2'000'000))); });
    expect_stop("mismatched-free", [] { ::operator delete[](hidden(::operator new(100))); });
    expect_stop("mismatched-free", [] { ::operator delete(hidden(::operator new[](100)), 100); });
    expect_stop("mismatched-free", [] { std::realloc(hidden(::operator new(100)), 200); });
    expect_stop("wrong-size",
                [] { ::operator delete(hidden(::operator new (100, std::align_val_t{4096}))); });
    expect_stop("wrong-size", [] {
        ::operator delete[](hidden(::operator new[](2'000'000)), std::align_val_t{4096});
    });
    expect_stop("wrong-size",
                [] { free_aligned_sized(hidden(aligned_alloc(4096, 100)), 256, 100); });
}

}  // namespace

int main() {
    expect_interposed();
    expect_blocks_of_their_own();
    expect_growth();
    expect_stop("access-beyond", [] { *static_cast<volatile char*>(take_nothing(0)) = 1; });
    expect_stop("access-beyond", [] { (void)*static_cast<volatile char*>(take_nothing(1)); });
    expect_stop("double-free", [] {
        void* const p = take_nothing(0);
        std::free(hidden(p));
        std::free(hidden(p));
    });
    ::operator delete(hidden(::operator new(hidden(std::size_t{0}))), hidden(std::size_t{0}));
    ::operator delete(hidden(::operator new(100)), hidden(std::size_t{100}));
    expect_stop("wrong-size",
                [] { ::operator delete(hidden(::operator new(100)), hidden(std::size_t{101})); });
    expect_stop("wrong-size", [] {
        const auto alignment = std::align_val_t(256);
        ::operator delete(hidden(::operator new(200'000, alignment)), hidden(std::size_t{8}),
                          alignment);
    });
    expect_sized_frees();
    expect_matching_frees();
    expect_mismatched_frees();
    return failures == 0 ? 0 : 1;
}
