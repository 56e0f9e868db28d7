#include "doctor/machine.hpp"

#include <fcntl.h>
#include <langinfo.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

#include <tensorpool/system_memory.hpp>

namespace tensorpool::command {
namespace {

enum class PageSize { small, huge };

/// Nanoseconds of processor time that a page of 4 KiB costs when it is touched for the first time:
/// the median of several rounds. 0 where there is no memory to try it with.
double measure_fault_ns(PageSize size);

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t huge_bytes = std::size_t{2} << 20;
// Large enough for the clock, small enough for any machine: 1,024 pages.
constexpr std::size_t tried_bytes = std::size_t{4} << 20;

char* align_up(void* address) {
    const auto number = reinterpret_cast<std::uintptr_t>(address);
    return static_cast<char*>(address) + (huge_bytes - number % huge_bytes) % huge_bytes;
}

/// Of this thread alone: what others on a busy machine take is no cost of a fault.
double processor_ns() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

double time_touches(char* memory) {
    const double begin = processor_ns();
    for (std::size_t i = 0; i < tried_bytes; i += page_bytes) {
        *const_cast<volatile char*>(memory + i) = 1;
    }
    return (processor_ns() - begin) / (tried_bytes / page_bytes);
}

double try_once(PageSize size) {
    void* const mapped = mmap(nullptr, tried_bytes + huge_bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return 0;
    char* const memory = align_up(mapped);
    // A kernel without huge pages refuses both, which leaves small ones.
    madvise(memory, tried_bytes, size == PageSize::huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    const double taken = time_touches(memory);
    munmap(mapped, tried_bytes + huge_bytes);
    return taken;
}

double measure_fault_ns(PageSize size) {
    std::array<double, 9> rounds{};
    for (double& round : rounds) round = try_once(size);
    std::ranges::nth_element(rounds, rounds.begin() + rounds.size() / 2);
    return rounds[rounds.size() / 2];
}

#if !defined(F_SEAL_FUTURE_WRITE)
constexpr int F_SEAL_FUTURE_WRITE = 0x10;
#endif

int number_in(const char* path) {
    int number = -1;
    std::ifstream(path) >> number;
    return number;
}

/// The word in brackets: `always [madvise] never`.
std::string chosen_word(const char* path) {
    std::string line;
    std::ifstream file(path);
    std::getline(file, line);
    const std::size_t begin = line.find('[');
    const std::size_t end = line.find(']');
    return begin == std::string::npos || end < begin ? "" : line.substr(begin + 1, end - begin - 1);
}

/// How many a list such as `0-3,8` names.
unsigned count_of(const char* path) {
    std::ifstream file(path);
    unsigned count = 0;
    std::string range;
    while (std::getline(file, range, ',')) {
        unsigned first = 0;
        unsigned last = 0;
        const int read = std::sscanf(range.c_str(), "%u-%u", &first, &last);
        count += read == 2 && last >= first ? last - first + 1 : 1;
    }
    return std::max(count, 1U);
}

std::uint64_t meminfo_bytes(std::string_view name) {
    std::ifstream file("/proc/meminfo");
    for (std::string line; std::getline(file, line);) {
        if (!line.starts_with(name)) continue;
        return std::strtoull(line.c_str() + name.size() + 1, nullptr, 10) * 1024;
    }
    return 0;
}

std::uint64_t limit_of(int resource) {
    rlimit limit{};
    if (getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) return unlimited;
    return limit.rlim_cur == RLIM_INFINITY ? unlimited : limit.rlim_cur;
}

std::string variable(const char* name) {
    const char* const value = std::getenv(name);
    return value == nullptr ? "" : value;
}

bool hides_processes() {
    std::ifstream mounts("/proc/self/mounts");
    for (std::string line; std::getline(mounts, line);) {
        std::istringstream fields(line);
        std::string device, folder, type, options;
        fields >> device >> folder >> type >> options;
        if (folder != "/proc") continue;
        const std::size_t at = options.find("hidepid=");
        return at != std::string::npos && options.substr(at + 8, 1) != "0" &&
               options.substr(at + 8, 3) != "off";
    }
    return false;
}

void try_memory_file(Machine& machine) {
    const int file = memfd_create("tensorpool-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    machine.memfd = file >= 0;
    if (file < 0) return;
    machine.write_seal = fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE) == 0;
    close(file);
}

void look_at_environment(Machine& machine) {
    machine.root = geteuid() == 0;
    machine.has_proc = access("/proc/self/fd", R_OK) == 0;
    const std::string terminal = variable("TERM");
    machine.has_terminal_type = !terminal.empty() && terminal != "dumb";
    machine.utf8 = std::strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    machine.statistics_mode = variable("TENSORPOOL_STATISTICS");
    machine.statistics_folder = variable("TENSORPOOL_STATISTICS_DIR");
    struct stat folder {};
    machine.statistics_folder_usable =
        stat(machine.statistics_folder.c_str(), &folder) == 0 && S_ISDIR(folder.st_mode) &&
        access(machine.statistics_folder.c_str(), R_OK | W_OK | X_OK) == 0;
}

}  // namespace

Machine examine_machine() {
    Machine machine;
    machine.processors = std::max(std::thread::hardware_concurrency(), 1U);
    machine.memory_nodes = count_of("/sys/devices/system/node/online");
    machine.memory_bytes = meminfo_bytes("MemTotal");
    machine.total_bytes = get_total_memory();
    machine.available_bytes = get_available_memory();
    machine.small_fault_ns = measure_fault_ns(PageSize::small);
    machine.huge_fault_ns = measure_fault_ns(PageSize::huge);
    machine.huge_pages = chosen_word("/sys/kernel/mm/transparent_hugepage/enabled");
    machine.overcommit = number_in("/proc/sys/vm/overcommit_memory");
    machine.commit_bytes = meminfo_bytes("CommitLimit");
    machine.lock_bytes = limit_of(RLIMIT_MEMLOCK);
    machine.address_bytes = limit_of(RLIMIT_AS);
    machine.trace_scope = number_in("/proc/sys/kernel/yama/ptrace_scope");
    machine.hides_processes = hides_processes();
#if defined(TENSORPOOL_COMMAND_SERVES)
    machine.serves = true;
#endif
#if defined(TENSORPOOL_COMMAND_HAS_PAGE)
    machine.has_page = true;
#endif
    try_memory_file(machine);
    look_at_environment(machine);
    machine.processes = StatisticsReader::list();
    return machine;
}

}  // namespace tensorpool::command
