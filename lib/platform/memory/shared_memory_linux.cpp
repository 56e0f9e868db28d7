// Memory that other processes may read: a memfd (memfd_create(2)), or a file if a folder is given.

#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <utility>

#include "platform/files/system_files_linux.hpp"
#include "platform/platform.hpp"

namespace tensorpool::platform {
namespace {

// From the kernel's fcntl.h. The system's headers may be older than the running kernel.
constexpr int seal_future_write = 0x0010;
constexpr int advice_populate_write = 23;  // mman-common.h
constexpr int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW;

/// A descriptor that is closed by the destructor unless it is released.
class File {
public:
    explicit File(int number) noexcept : number_(number) {}
    ~File() {
        if (number_ >= 0) ::close(number_);
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    explicit operator bool() const noexcept { return number_ >= 0; }
    int number() const noexcept { return number_; }

    /// Releases the descriptor, moved to a high number if one is free.
    int release_high() noexcept { return move_high(std::exchange(number_, -1)); }

private:
    int number_;
};

/// Returns whether the limit on file sizes permits `bytes`. A larger file would cause SIGXFSZ.
bool may_be_as_large(std::size_t bytes) noexcept {
    rlimit limit{};
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && bytes <= limit.rlim_cur;
}

bool is_own_regular_file(int file, struct stat& status) noexcept {
    return fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid();
}

/// Maps a file that already has its size. Calls `then` once the file is mapped.
template <class Then>
SharedMemory map_file(File& file, std::size_t bytes, Then then) noexcept {
    struct stat status {};
    if (fstat(file.number(), &status) != 0) return {};
    void* const address =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.number(), 0);
    if (address == MAP_FAILED) return {};
    then();
    return {address, file.release_high(), status.st_dev, status.st_ino};
}

Path own_path(const char* folder) noexcept {
    char name[16];
    std::snprintf(name, sizeof name, "/%d", static_cast<int>(getpid()));
    return Path(folder) / name;
}

/// Removes the file of an ended process to make way for a new one. Returns false if the owner of
/// the file still runs.
bool remove_dead_file(const char* path, std::size_t bytes) noexcept {
    const File old(::open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    struct stat status {};
    const auto is_one = [&] {  // complete, or created and not yet sized
        return status.st_size == 0 || status.st_size == static_cast<off_t>(bytes);
    };
    return old && is_own_regular_file(old.number(), status) && is_one() &&
           flock(old.number(), LOCK_EX | LOCK_NB) == 0 && ::unlink(path) == 0;
}

int create_file(const char* path, std::size_t bytes) noexcept {
    const auto create = [path] {
        return ::open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    };
    const int file = create();
    if (file >= 0 || errno != EEXIST || !remove_dead_file(path, bytes)) return file;
    return create();
}

/// Returns whether the descriptor still refers to the same file; `if_unknown` if the system refuses
/// to tell.
bool is_still_open(const SharedMemory& memory, bool if_unknown = false) noexcept {
    struct stat status {};
    if (memory.file < 0) return false;
    if (fstat(memory.file, &status) != 0) return if_unknown && errno != EBADF;
    return status.st_dev == memory.device && status.st_ino == memory.inode;
}

/// Returns the number of the process's name space; 0 if it is unknown.
std::uint64_t process_name_space() noexcept {
    struct stat status {};
    return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

}  // namespace

SharedMemory share_memory(const char* name, std::size_t bytes, Writers writers) noexcept {
    const SystemCalls system_calls;
    if (!may_be_as_large(bytes)) return {};
    File file(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!file || ftruncate(file.number(), static_cast<off_t>(bytes)) != 0) return {};
    return map_file(file, bytes, [&] {
        // Linux 5.1 and later can prevent others from writing; this process's mapping stays
        // writable.
        if (writers == Writers::same_user ||
            fcntl(file.number(), F_ADD_SEALS, seals | seal_future_write) != 0) {
            fcntl(file.number(), F_ADD_SEALS, seals);
        }
    });
}

SharedMemory share_memory_in(const char* folder, std::size_t bytes) noexcept {
    const SystemCalls system_calls;
    const Path path = own_path(folder);
    // A program with more rights than the user who started it creates no files at a path of that
    // user.
    if (!may_be_as_large(bytes) || getauxval(AT_SECURE) != 0) return {};
    File file(create_file(path.c_str(), bytes));
    if (!file) return {};
    const bool ready = flock(file.number(), LOCK_EX | LOCK_NB) == 0 &&
                       ftruncate(file.number(), static_cast<off_t>(bytes)) == 0;
    const SharedMemory memory = ready ? map_file(file, bytes, [] {}) : SharedMemory{};
    if (memory.address == nullptr) ::unlink(path.c_str());
    return memory;
}

bool get_shared_pages(void* address, std::size_t bytes) noexcept {
    const SystemCalls system_calls;
    // Linux 5.14 and later. Older kernels return EINVAL because they do not know the advice.
    return madvise(address, bytes, advice_populate_write) == 0 || errno == EINVAL;
}

void keep_from_forks(void* address, std::size_t bytes) noexcept {
    const SystemCalls system_calls;
    madvise(address, bytes, MADV_DONTFORK);
}

void remove_shared_file(const char* folder, const SharedMemory& memory) noexcept {
    const SystemCalls system_calls;
    const Path path = own_path(folder);
    struct stat status {};
    if (lstat(path.c_str(), &status) != 0) return;
    if (status.st_dev == memory.device && status.st_ino == memory.inode) ::unlink(path.c_str());
}

void close_shared_memory(const SharedMemory& memory) noexcept {
    const SystemCalls system_calls;
    if (is_still_open(memory, true)) ::close(memory.file);
}

bool replace_mapping(void* address, void* by, std::size_t bytes) noexcept {
    const SystemCalls system_calls;
    return mremap(by, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, address) != MAP_FAILED;
}

bool make_private(void* address, const SharedMemory& memory, std::size_t bytes) noexcept {
    const SystemCalls system_calls;
    return is_still_open(memory) && mmap(address, bytes, PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_FIXED, memory.file, 0) != MAP_FAILED;
}

// proc(5): number, name in parentheses, which may contain any character including newlines, state,
// and numbers from the fourth field on. The 22nd field is the start time.
ProcessIdentity identify_process() noexcept {
    const SystemCalls system_calls;
    ProcessIdentity identity{.number = static_cast<std::uint64_t>(getpid()),
                             .name_space = process_name_space()};
    const File file(::open("/proc/self/stat", O_RDONLY | O_CLOEXEC));
    char text[1024];  // large enough for all digits of its numbers
    const ssize_t got = file ? ::read(file.number(), text, sizeof text) : -1;
    std::string_view line(text, got > 0 ? static_cast<std::size_t>(got) : 0);
    const std::size_t begin = line.find('(') + 1;
    const std::size_t end = line.rfind(')');
    if (begin == 0 || end == std::string_view::npos || end < begin) return identity;
    const std::size_t length = std::min(end - begin, sizeof identity.name - 1);
    std::copy_n(line.data() + begin, length, identity.name);
    line.remove_prefix(std::min(end + 2, line.size()));
    for (int field = 3; field < 22; ++field) take_field(line, ' ');
    identity.start_ticks = parse_number(line).value_or(0);
    return identity;
}

}  // namespace tensorpool::platform
