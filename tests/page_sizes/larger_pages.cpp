// A library for LD_PRELOAD that simulates larger pages of the system. Their size is
// TENSORPOOL_TEST_PAGE_BYTES, a multiple of the real size. Like a kernel with such pages, it
// rejects addresses that are not a multiple of that size and rounds sizes up.

#include <dlfcn.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace {

using SystemCall = long (*)(long, ...);

constexpr std::size_t real_page_bytes = 4096;

std::size_t page_bytes() {
    static const std::size_t bytes = [] {
        const char* const text = std::getenv("TENSORPOOL_TEST_PAGE_BYTES");
        return text != nullptr ? std::strtoul(text, nullptr, 10) : real_page_bytes;
    }();
    return bytes;
}

SystemCall real() {
    static const auto call = reinterpret_cast<SystemCall>(dlsym(RTLD_NEXT, "syscall"));
    return call;
}

std::size_t whole(std::size_t bytes) {
    return (bytes + page_bytes() - 1) / page_bytes() * page_bytes();
}

bool is_aligned(const void* address) {
    return reinterpret_cast<std::uintptr_t>(address) % page_bytes() == 0;
}

template <class Result>
Result fail(int error, Result result) {
    errno = error;
    return result;
}

void* map_at(void* address, std::size_t bytes, int protection, int flags, int file, off_t offset) {
    return reinterpret_cast<void*>(
        real()(SYS_mmap, address, bytes, protection, flags, file, offset));
}

/// Reserves a range of aligned addresses: just below the range that the system offers if that is
/// free, which needs no more address space; otherwise a part of a larger range.
char* reserve_aligned(std::size_t bytes) {
    constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void* hint = nullptr;
    for (int attempt = 0; attempt < 2; ++attempt) {
        void* const got = map_at(hint, bytes, PROT_NONE, flags, -1, 0);
        if (got == MAP_FAILED) return nullptr;
        if (is_aligned(got)) return static_cast<char*>(got);
        real()(SYS_munmap, got, bytes);
        const auto address = reinterpret_cast<std::uintptr_t>(got);
        hint = reinterpret_cast<void*>(address - address % page_bytes());
    }
    void* const got = map_at(nullptr, bytes + page_bytes(), PROT_NONE, flags, -1, 0);
    if (got == MAP_FAILED) return nullptr;
    const std::size_t before =
        whole(reinterpret_cast<std::uintptr_t>(got)) - reinterpret_cast<std::uintptr_t>(got);
    char* const begin = static_cast<char*>(got) + before;
    if (before != 0) real()(SYS_munmap, got, before);
    real()(SYS_munmap, begin + bytes, page_bytes() - before);
    return begin;
}

void* map(void* address, std::size_t bytes, int protection, int flags, int file, off_t offset) {
    if ((flags & MAP_FIXED) != 0) {
        if (!is_aligned(address)) return fail(EINVAL, MAP_FAILED);
        return map_at(address, whole(bytes), protection, flags, file, offset);
    }
    if (bytes == 0) return fail(EINVAL, MAP_FAILED);
    if (whole(bytes) < bytes) return fail(ENOMEM, MAP_FAILED);
    if (address != nullptr && is_aligned(address)) {  // a hint, used if that range is free
        void* const got = map_at(address, whole(bytes), protection, flags, file, offset);
        if (got == MAP_FAILED || got == address) return got;
        real()(SYS_munmap, got, whole(bytes));
    }
    char* const begin = reserve_aligned(whole(bytes));
    if (begin == nullptr) return MAP_FAILED;
    void* const mapped = map_at(begin, whole(bytes), protection, flags | MAP_FIXED, file, offset);
    if (mapped == MAP_FAILED) {
        const int error = errno;
        real()(SYS_munmap, begin, whole(bytes));
        errno = error;
    }
    return mapped;
}

int protect(void* address, std::size_t bytes, int protection) {
    if (!is_aligned(address)) return fail(EINVAL, -1);
    return static_cast<int>(real()(SYS_mprotect, address, whole(bytes), protection));
}

int advise(void* address, std::size_t bytes, int advice) {
    if (!is_aligned(address)) return fail(EINVAL, -1);
    return static_cast<int>(real()(SYS_madvise, address, whole(bytes), advice));
}

}  // namespace

extern "C" {

int getpagesize() noexcept {
    return static_cast<int>(page_bytes());
}

void* mmap(void* address, std::size_t bytes, int protection, int flags, int file,
           off_t offset) noexcept {
    return map(address, bytes, protection, flags, file, offset);
}

int munmap(void* address, std::size_t bytes) noexcept {
    if (!is_aligned(address)) return fail(EINVAL, -1);
    return static_cast<int>(real()(SYS_munmap, address, whole(bytes)));
}

int mprotect(void* address, std::size_t bytes, int protection) noexcept {
    return protect(address, bytes, protection);
}

int madvise(void* address, std::size_t bytes, int advice) noexcept {
    return advise(address, bytes, advice);
}

int mincore(void* address, std::size_t bytes, unsigned char* answers) noexcept {
    if (!is_aligned(address)) return fail(EINVAL, -1);
    unsigned char of_real_pages[256];
    for (std::size_t page = 0; page < whole(bytes) / page_bytes(); ++page) {
        char* const begin = static_cast<char*>(address) + page * page_bytes();
        if (real()(SYS_mincore, begin, page_bytes(), of_real_pages) != 0) return -1;
        answers[page] = 0;
        for (std::size_t real_page = 0; real_page < page_bytes() / real_page_bytes; ++real_page) {
            answers[page] |= of_real_pages[real_page];
        }
    }
    return 0;
}

// Functions with which tests replace the C library's make system calls through this one.
long syscall(long number, ...) noexcept {
    std::va_list list;
    va_start(list, number);
    long given[6];
    for (long& argument : given) argument = va_arg(list, long);
    va_end(list);
    auto* const address = reinterpret_cast<void*>(given[0]);
    const auto bytes = static_cast<std::size_t>(given[1]);
    const auto third = static_cast<int>(given[2]);
    switch (number) {
        case SYS_mmap:
            return reinterpret_cast<long>(map(address, bytes, third, static_cast<int>(given[3]),
                                              static_cast<int>(given[4]), given[5]));
        case SYS_mprotect:
            return protect(address, bytes, third);
        case SYS_madvise:
            return advise(address, bytes, third);
        default:
            return real()(number, given[0], given[1], given[2], given[3], given[4], given[5]);
    }
}

unsigned long getauxval(unsigned long type) noexcept {
    if (type == AT_PAGESZ) return page_bytes();
    static const auto next =
        reinterpret_cast<unsigned long (*)(unsigned long)>(dlsym(RTLD_NEXT, "getauxval"));
    return next(type);
}

}  // extern "C"
