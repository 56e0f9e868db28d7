#include "lab/faults/platform_calls.hpp"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <iterator>
#include <map>
#include <mutex>

namespace tensorpool::faults {
namespace {

std::atomic<std::uint64_t> counted = 0;
std::atomic<std::uint64_t> refused_from = 0;  // 0: nothing is refused
std::atomic<bool> refused_from_then_on = false;
std::atomic<const char*> first_refused = nullptr;
std::atomic<std::size_t> mapped = 0;
std::atomic<bool> leaks_after_refusal = false;

bool refuses(const char* name) noexcept {
    const std::uint64_t number = counted.fetch_add(1) + 1;
    const std::uint64_t from = refused_from.load();
    if (from == 0 || number < from || (number > from && !refused_from_then_on.load())) return false;
    const char* none = nullptr;
    first_refused.compare_exchange_strong(none, name);
    return true;
}

/// A set of address ranges that do not touch.
class Ranges {
public:
    void add(std::uintptr_t begin, std::uintptr_t end) {
        const std::lock_guard guard(mutex_);
        cut(begin, end);
        ends_[begin] = end;
    }
    void remove(std::uintptr_t begin, std::uintptr_t end) {
        const std::lock_guard guard(mutex_);
        cut(begin, end);
    }
    std::size_t bytes_in(std::uintptr_t begin, std::uintptr_t end) {
        const std::lock_guard guard(mutex_);
        std::size_t bytes = 0;
        for (const auto& [from, to] : ends_) {
            const std::uintptr_t first = std::max(from, begin);
            const std::uintptr_t last = std::min(to, end);
            if (first < last) bytes += last - first;
        }
        return bytes;
    }

private:
    void cut(std::uintptr_t begin, std::uintptr_t end) {
        auto range = ends_.lower_bound(begin);
        if (range != ends_.begin() && std::prev(range)->second > begin) --range;
        while (range != ends_.end() && range->first < end) {
            const auto [from, to] = *range;
            range = ends_.erase(range);
            if (from < begin) ends_[from] = begin;
            if (to > end) ends_[end] = to;
        }
    }

    std::mutex mutex_;
    std::map<std::uintptr_t, std::uintptr_t> ends_;
};

Ranges& kept() {
    static auto* const ranges = new Ranges;  // never destroyed: threads may end late
    return *ranges;
}

std::uintptr_t begin_of(const void* p) {
    return reinterpret_cast<std::uintptr_t>(p);
}

int fail_with(int error) noexcept {
    errno = error;
    return -1;
}

}  // namespace

void refuse(std::uint64_t n, Refuse how) noexcept {
    first_refused.store(nullptr);
    counted.store(0);
    refused_from_then_on.store(how == Refuse::from_then_on);
    refused_from.store(n);
}

void plant_a_leak() noexcept {
    leaks_after_refusal.store(true);
}
void refuse_nothing() noexcept {
    refused_from.store(0);
}
const char* refused_call() noexcept {
    return first_refused.load();
}
std::size_t mapped_bytes() noexcept {
    return mapped.load();
}

std::size_t kept_bytes(const void* begin, std::size_t bytes) {
    return kept().bytes_in(begin_of(begin), begin_of(begin) + bytes);
}

}  // namespace tensorpool::faults

// The linker replaces calls of each function `f` by `__wrap_f`; `__real_f` is the original
// function. NOLINTBEGIN: the names are the linker's.
extern "C" {
using namespace tensorpool::faults;

void* __real_mmap(void*, std::size_t, int, int, int, off_t);
int __real_munmap(void*, std::size_t);
int __real_mprotect(void*, std::size_t, int);
int __real_madvise(void*, std::size_t, int);
void* __real_mremap(void*, std::size_t, std::size_t, int, ...);
int __real_pthread_create(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
int __real_sigaction(int, const struct sigaction*, struct sigaction*);
int __real_pthread_key_create(pthread_key_t*, void (*)(void*));
int __real_pthread_setspecific(pthread_key_t, const void*);
int __real_pthread_atfork(void (*)(), void (*)(), void (*)());
int __real_open(const char*, int, ...);
ssize_t __real_read(int, void*, std::size_t);
long __real_syscall(long, ...);
int __real_memfd_create(const char*, unsigned);
int __real_ftruncate(int, off_t);
int __real_fcntl(int, int, ...);
int __real_fstat(int, struct stat*);
int __real_ioctl(int, unsigned long, ...);

void* __wrap_mmap(void* address, std::size_t bytes, int protection, int flags, int file, off_t at) {
    if (refuses("mmap")) return fail_with(ENOMEM), MAP_FAILED;
    void* const p = __real_mmap(address, bytes, protection, flags, file, at);
    if (p == MAP_FAILED) return p;
    // A mapping that replaces another one has the same size, and its pages are dropped.
    if ((flags & MAP_FIXED) != 0) {
        kept().remove(begin_of(p), begin_of(p) + bytes);
    } else {
        mapped.fetch_add(bytes);
    }
    return p;
}

// Ends of a reservation are unmapped separately, so unmapped ranges may differ from mapped ones.
int __wrap_munmap(void* address, std::size_t bytes) {
    if (refused_call() != nullptr && leaks_after_refusal.exchange(false)) return 0;
    mapped.fetch_sub(bytes);
    kept().remove(begin_of(address), begin_of(address) + bytes);
    return __real_munmap(address, bytes);
}

int __wrap_mprotect(void* address, std::size_t bytes, int protection) {
    if (refuses("mprotect")) return fail_with(ENOMEM);
    kept().add(begin_of(address), begin_of(address) + bytes);
    return __real_mprotect(address, bytes, protection);
}

int __wrap_madvise(void* address, std::size_t bytes, int advice) {
    if (advice == MADV_DONTNEED) kept().remove(begin_of(address), begin_of(address) + bytes);
    if (refuses("madvise")) return fail_with(EINVAL);
    return __real_madvise(address, bytes, advice);
}

// The pages that the library moves leave their mapping behind.
void* __wrap_mremap(void* from, std::size_t bytes, std::size_t new_bytes, int flags, ...) {
    std::va_list list;
    va_start(list, flags);
    void* const to = va_arg(list, void*);
    va_end(list);
    if (refuses("mremap")) return fail_with(ENOMEM), MAP_FAILED;
    void* const moved = __real_mremap(from, bytes, new_bytes, flags, to);
    if (moved == MAP_FAILED) return moved;
    kept().remove(begin_of(from), begin_of(from) + bytes);
    kept().add(begin_of(to), begin_of(to) + new_bytes);
    return moved;
}

int __wrap_pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                          void* (*function)(void*), void* argument) {
    if (refuses("pthread_create")) return EAGAIN;
    return __real_pthread_create(thread, attributes, function, argument);
}

int __wrap_sigaction(int signal, const struct sigaction* action, struct sigaction* before) {
    return refuses("sigaction") ? fail_with(EINVAL) : __real_sigaction(signal, action, before);
}

int __wrap_pthread_key_create(pthread_key_t* key, void (*destructor)(void*)) {
    return refuses("pthread_key_create") ? EAGAIN : __real_pthread_key_create(key, destructor);
}

int __wrap_pthread_setspecific(pthread_key_t key, const void* value) {
    return refuses("pthread_setspecific") ? ENOMEM : __real_pthread_setspecific(key, value);
}

int __wrap_pthread_atfork(void (*before)(), void (*in_parent)(), void (*in_child)()) {
    return refuses("pthread_atfork") ? ENOMEM : __real_pthread_atfork(before, in_parent, in_child);
}

int __wrap_open(const char* path, int flags, ...) {
    return refuses("open") ? fail_with(EMFILE) : __real_open(path, flags);
}

ssize_t __wrap_read(int file, void* to, std::size_t bytes) {
    return refuses("read") ? fail_with(EIO) : __real_read(file, to, bytes);
}

int __wrap_memfd_create(const char* name, unsigned flags) {
    return refuses("memfd_create") ? fail_with(EMFILE) : __real_memfd_create(name, flags);
}

int __wrap_ftruncate(int file, off_t bytes) {
    return refuses("ftruncate") ? fail_with(EFBIG) : __real_ftruncate(file, bytes);
}

int __wrap_fcntl(int file, int command, ...) {
    std::va_list list;
    va_start(list, command);
    const long argument = va_arg(list, long);
    va_end(list);
    return refuses("fcntl") ? fail_with(EINVAL) : __real_fcntl(file, command, argument);
}

int __wrap_fstat(int file, struct stat* status) {
    return refuses("fstat") ? fail_with(EIO) : __real_fstat(file, status);
}

// A request to wake threads can only be wrong, not refused.
int __wrap_ioctl(int file, unsigned long request, ...) {
    std::va_list list;
    va_start(list, request);
    void* const argument = va_arg(list, void*);
    va_end(list);
    if (request != UFFDIO_WAKE && refuses("ioctl")) return fail_with(ENOMEM);
    return __real_ioctl(file, request, argument);
}

long __wrap_syscall(long number, ...) {
    long arguments[6];
    std::va_list list;
    va_start(list, number);
    for (long& argument : arguments) argument = va_arg(list, long);
    va_end(list);
    if (refuses("syscall")) return fail_with(EPERM);
    return __real_syscall(number, arguments[0], arguments[1], arguments[2], arguments[3],
                          arguments[4], arguments[5]);
}
}
// NOLINTEND
