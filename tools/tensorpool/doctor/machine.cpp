#include "doctor/doctor.hpp"

#include <fcntl.h>
#include <langinfo.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <system_error>
#include <thread>

#include <tensorpool/system_memory.hpp>

#include "common/posix.hpp"
#include "page_assets.hpp"

namespace tensorpool::command {
namespace {

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t huge_bytes = std::size_t{2} << 20;
// Long enough for the clock to measure, and small enough for any machine: 1,024 pages. With sizes
// between a page and a huge page, half of them are touched.
constexpr std::size_t tried_bytes = std::size_t{4} << 20;

char* align_up(void* address) {
    const auto number = reinterpret_cast<std::uintptr_t>(address);
    return static_cast<char*>(address) + (huge_bytes - number % huge_bytes) % huge_bytes;
}

/// CPU time of this thread, so that other load on the machine does not count.
double processor_ns() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

/// Touches pieces of `piece` bytes, each starting `stride` bytes after the previous one. Returns
/// nanoseconds per page.
double time_touches(char* memory, std::size_t piece, std::size_t stride) {
    const double begin = processor_ns();
    std::size_t touched = 0;
    for (std::size_t at = 0; at < tried_bytes; at += stride) {
        for (std::size_t i = 0; i < piece; i += page_bytes, ++touched) {
            *const_cast<volatile char*>(memory + at + i) = 1;
        }
    }
    return (processor_ns() - begin) / static_cast<double>(touched);
}

double try_once(std::size_t folio_bytes) {
    void* const mapped = mmap(nullptr, tried_bytes + huge_bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return 0;
    char* const memory = align_up(mapped);
    const bool whole = folio_bytes == 0 || folio_bytes >= huge_bytes;
    const std::size_t piece = whole ? tried_bytes : folio_bytes;
    // Only every second piece is advised, so that no page larger than a piece fits into an advised
    // range. A kernel without huge pages rejects the advice, and small pages remain.
    madvise(memory, tried_bytes, MADV_NOHUGEPAGE);
    const std::size_t stride = whole ? tried_bytes : 2 * folio_bytes;
    for (std::size_t at = 0; folio_bytes != 0 && at < tried_bytes; at += stride) {
        madvise(memory + at, piece, MADV_HUGEPAGE);
    }
    const double taken = time_touches(memory, piece, stride);
    munmap(mapped, tried_bytes + huge_bytes);
    return taken;
}

#if !defined(F_SEAL_FUTURE_WRITE)
constexpr int F_SEAL_FUTURE_WRITE = 0x10;
#endif

int number_in(const char* path) {
    int number = -1;
    std::ifstream(path) >> number;
    return number;
}

/// How many numbers a list such as `0-3,8` contains.
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
    const Descriptor file(memfd_create("tensorpool-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    machine.memfd = static_cast<bool>(file);
    machine.write_seal =
        file && fcntl(file.number(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE) == 0;
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

double measure_first_touch_ns(std::uint64_t folio_bytes) {
    std::array<double, 9> rounds{};
    for (double& round : rounds) round = try_once(folio_bytes);
    std::ranges::nth_element(rounds, rounds.begin() + rounds.size() / 2);
    return rounds[rounds.size() / 2];
}

std::string chosen_word(const std::filesystem::path& path) {
    std::string line;
    std::ifstream file(path);
    std::getline(file, line);
    const std::size_t begin = line.find('[');
    const std::size_t end = line.find(']');
    return begin == std::string::npos || end < begin ? "" : line.substr(begin + 1, end - begin - 1);
}

std::vector<PageSizeSetting> read_page_sizes(const std::filesystem::path& folder) {
    const std::string common = chosen_word(folder / "enabled");
    std::vector<PageSizeSetting> sizes;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
        unsigned long kib = 0;
        const std::string name = entry.path().filename().string();
        if (std::sscanf(name.c_str(), "hugepages-%lukB", &kib) != 1) continue;
        PageSizeSetting size{.bytes = std::uint64_t{kib} * 1024,
                             .word = chosen_word(entry.path() / "enabled")};
        if (size.word.empty()) continue;  // not a setting for anonymous memory
        const std::string& counts = size.word == "inherit" ? common : size.word;
        size.given = counts == "always" || counts == "madvise";
        sizes.push_back(std::move(size));
    }
    std::ranges::sort(sizes, {}, &PageSizeSetting::bytes);
    return sizes;
}

void measure_page_sizes(std::vector<PageSizeSetting>& sizes) {
    for (PageSizeSetting& size : sizes) {
        if (size.given) size.fault_ns = measure_first_touch_ns(size.bytes);
    }
}

Machine examine_machine() {
    Machine machine;
    machine.processors = std::max(std::thread::hardware_concurrency(), 1U);
    machine.memory_nodes = count_of("/sys/devices/system/node/online");
    machine.memory_bytes = meminfo_bytes("MemTotal");
    machine.total_bytes = get_total_memory();
    machine.available_bytes = get_available_memory();
    machine.small_fault_ns = measure_first_touch_ns(0);
    machine.huge_fault_ns = measure_first_touch_ns(huge_page_bytes);
    machine.huge_pages = chosen_word(std::filesystem::path(page_size_folder) / "enabled");
    machine.page_sizes = read_page_sizes(page_size_folder);
    measure_page_sizes(machine.page_sizes);
    machine.overcommit = number_in("/proc/sys/vm/overcommit_memory");
    machine.commit_bytes = meminfo_bytes("CommitLimit");
    machine.lock_bytes = limit_of(RLIMIT_MEMLOCK);
    machine.address_bytes = limit_of(RLIMIT_AS);
    machine.trace_scope = number_in("/proc/sys/kernel/yama/ptrace_scope");
    machine.hides_processes = hides_processes();
    machine.has_page = page::find("/") != nullptr;
    try_memory_file(machine);
    look_at_environment(machine);
    machine.processes = StatisticsReader::list();
    return machine;
}

}  // namespace tensorpool::command
