// Every function with sizes around the minimum: the owner of the block, its alignment, size and
// content, and errors like those of the C library.

#include <malloc.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <vector>

#include "interpose/interposed.hpp"

namespace {

using namespace tensorpool::testing;
using std::size_t;

std::vector<size_t> sizes() {
    std::vector<size_t> all = {0,      1,      15,     64,      65,      1000,     4096,
                               65'535, 65'536, 65'537, 100'000, 1 << 20, 5'000'000};
    for (const size_t near : {minimum() - 1, minimum(), minimum() + 1}) all.push_back(near);
    return all;
}

void expect_block(void* p, size_t bytes, size_t alignment) {
    p = hidden(p);
    expect(p != nullptr, "a block", bytes);
    expect(is_of_pool(p) == (bytes >= minimum()),
           "a pool block if and only if at least the minimum", bytes);
    expect(reinterpret_cast<std::uintptr_t>(p) % alignment == 0, "the alignment", alignment);
    expect(malloc_usable_size(p) >= bytes, "room for the request", bytes);
    fill(p, malloc_usable_size(p), bytes);
    expect(is_filled(p, malloc_usable_size(p), bytes), "the content", bytes);
}

void try_plain(size_t bytes) {
    void* const p = std::malloc(bytes);
    expect_block(p, bytes, 16);
    std::free(p);
    auto* const zeros = static_cast<unsigned char*>(hidden(std::calloc(bytes, 1)));
    for (size_t i = 0; i < bytes; ++i) expect(zeros[i] == 0, "zeros", bytes);
    expect_block(zeros, bytes, 16);
    std::free(zeros);
    void* const array = reallocarray(nullptr, bytes, 1);
    expect_block(array, bytes, 16);
    std::free(array);
    void* const sized = std::malloc(bytes);
    expect_block(sized, bytes, 16);
    tensorpool::testing::free_sized(sized, bytes);
}

void try_aligned(size_t bytes) {
    for (const size_t alignment : {16UL, 32UL, 64UL, 128UL, 4096UL, 65'536UL, 2UL << 20}) {
        void* p = nullptr;
        expect(posix_memalign(&p, alignment, bytes) == 0, "posix_memalign", bytes);
        expect_block(p, bytes, alignment);
        std::free(p);
        for (const auto function : {memalign, aligned_alloc}) {
            void* const q = hidden(function)(alignment, bytes);
            expect_block(q, bytes, alignment);
            tensorpool::testing::free_aligned_sized(q, alignment, bytes);
        }
        const auto as = std::align_val_t(alignment);
        void* const n = ::operator new(bytes, as);
        expect_block(n, bytes == 0 ? 1 : bytes, alignment);
        ::operator delete(n, bytes, as);
        void* const a = ::operator new[](bytes, as, std::nothrow);
        expect_block(a, bytes == 0 ? 1 : bytes, alignment);
        ::operator delete[](a, as);
    }
    void* const v = valloc(bytes);
    expect_block(v, bytes, 4096);
    std::free(v);
    void* const pages = pvalloc(bytes);
    expect_block(pages, (bytes + 4095) / 4096 * 4096, 4096);
    std::free(pages);
}

void try_operators(size_t bytes) {
    const size_t least = bytes == 0 ? 1 : bytes;
    const std::function<void*()> makers[] = {[=] { return ::operator new(bytes); },
                                             [=] { return ::operator new[](bytes); },
                                             [=] { return ::operator new(bytes, std::nothrow); },
                                             [=] { return ::operator new[](bytes, std::nothrow); }};
    const std::function<void(void*)> enders[] = {
        [](void* p) { ::operator delete(p); }, [](void* p) { ::operator delete[](p); },
        // A wrong size, as in a program without virtual destructors.
        [](void* p) { ::operator delete(p, 8); }, [](void* p) { ::operator delete[](p, 1 << 20); },
        [](void* p) { ::operator delete(p, std::nothrow); }, [](void* p) { std::free(p); }};
    for (const auto& make : makers) {
        for (const auto& end : enders) {
            void* const p = make();
            expect_block(p, least, 16);
            end(p);
        }
    }
}

// Reallocates from each size to each other size, and so across the minimum in both directions.
void try_realloc() {
    for (const size_t from : sizes()) {
        for (const size_t to : sizes()) {
            if (from == 0 || to == 0) continue;
            void* const p = std::malloc(from);
            fill(p, from, from);
            void* const q = std::realloc(p, to);
            expect(q != nullptr, "a block", to);
            expect(is_filled(q, from < to ? from : to, from), "the old content", to);
            expect(malloc_usable_size(q) >= to, "room for the new size", to);
            fill(q, to, to);
            std::free(q);
        }
    }
    for (const size_t bytes : {10UL, 1UL << 20}) {
        expect(std::realloc(std::malloc(bytes), hidden(0UL)) == nullptr, "nullptr for 0 bytes");
    }
    void* const p = std::malloc(1 << 20);
    expect(std::realloc(hidden(p), 1'000'000) == p, "the same block if it has room");
    std::free(p);
}

// A block that grows in small steps is not copied at each step.
void try_small_steps() {
    void* p = nullptr;
    size_t moves = 0;
    for (size_t bytes = 1 << 20; bytes <= 32 << 20; bytes += 4096) {
        void* const q = std::realloc(hidden(p), bytes);
        if (q != p) ++moves;
        p = q;
    }
    expect(moves < 50, "fewer than fifty moves", moves);
    std::free(p);
}

// Neither of the two blocks has room behind it, so their pages move.
void try_two_by_turns() {
    constexpr size_t step = 4 << 20;
    char* blocks[2] = {};
    for (size_t bytes = step; bytes <= 20 * step; bytes += step) {
        for (char*& block : blocks) {
            block = static_cast<char*>(std::realloc(hidden(block), bytes));
            std::memset(block + bytes - step, static_cast<int>(bytes / step), step);
        }
    }
    for (char* const block : blocks) {
        size_t kept = 0;
        for (size_t at = 0; at < 20 * step; at += 1024) {
            if (block[at] == static_cast<char>(at / step + 1)) ++kept;
        }
        expect(kept == 20 * step / 1024, "the written content", kept);
        std::free(block);
    }
}

template <class Function>
void expect_error(int wanted, const char* what, Function function) {
    errno = 0;
    expect(hidden(function()) == nullptr && errno == wanted, what, static_cast<size_t>(errno));
}

void try_errors() {
    const size_t most = hidden(SIZE_MAX);
    const size_t half = hidden(SIZE_MAX / 2 + 1);
    expect_error(ENOMEM, "malloc too large", [=] { return std::malloc(most); });
    expect_error(ENOMEM, "calloc too large", [=] { return std::calloc(half, 2); });
    expect_error(ENOMEM, "calloc too large", [=] { return std::calloc(1, half); });
    expect_error(ENOMEM, "pvalloc too large", [=] { return pvalloc(most); });
    expect_error(EINVAL, "memalign", [=] { return memalign(half + 1, 10); });
    void* const kept = std::malloc(100);
    fill(kept, 100, 1);
    expect_error(ENOMEM, "reallocarray too large",
                 [=] { return reallocarray(hidden(kept), half, 2); });
    expect_error(ENOMEM, "realloc too large", [=] { return std::realloc(hidden(kept), half); });
    expect(is_filled(kept, 100, 1), "an unchanged block after a failure");
    std::free(kept);
    void* p = kept;
    for (const size_t alignment : {0UL, 1UL, 4UL, 24UL}) {
        expect(posix_memalign(&p, alignment, 100) == EINVAL && p == kept, "EINVAL", alignment);
    }
    errno = 0;
    expect(posix_memalign(&p, 64, half) == ENOMEM && p == kept && errno == ENOMEM, "ENOMEM");
    // Rounds up like the C library of Debian 12.
    void* const rounded = memalign(hidden(48UL), 100'000);
    expect(reinterpret_cast<std::uintptr_t>(rounded) % 64 == 0,
           "alignment to the next power of two");
    std::free(rounded);
}

void try_new_too_large() {
    static int calls = 0;
    std::set_new_handler([] {
        if (++calls == 3) std::set_new_handler(nullptr);
    });
    bool thrown = false;
    try {
        (void)hidden(::operator new(hidden(SIZE_MAX)));
    } catch (const std::bad_alloc&) {
        thrown = true;
    }
    expect(thrown && calls == 3, "calls of the handler until there is none",
           static_cast<size_t>(calls));
    expect(hidden(::operator new(hidden(SIZE_MAX), std::nothrow)) == nullptr, "nullptr");
    expect(
        hidden(::operator new[](hidden(SIZE_MAX), std::align_val_t(64), std::nothrow)) == nullptr,
        "nullptr");
}

void try_small_rules() {
    void* const one = std::malloc(hidden(0UL));
    void* const other = std::malloc(hidden(0UL));
    expect(one != nullptr && other != nullptr && one != other, "distinct blocks for 0 bytes");
    std::free(one);
    std::free(other);
    std::free(nullptr);
    ::operator delete(nullptr);
    tensorpool::testing::free_sized(nullptr, 100);
    tensorpool::testing::free_aligned_sized(nullptr, 64, 100);
    expect(malloc_usable_size(nullptr) == 0, "size 0 of nullptr");
    void* const p = std::malloc(1 << 20);
    errno = 77;
    std::free(p);
    expect(errno == 77, "unchanged errno after free");
}

}  // namespace

int main() {
    expect_interposed();
    for (const size_t bytes : sizes()) {
        try_plain(bytes);
        try_aligned(bytes);
        try_operators(bytes);
    }
    try_realloc();
    try_small_steps();
    try_two_by_turns();
    try_errors();
    try_new_too_large();
    try_small_rules();
    return failures == 0 ? 0 : 1;
}
