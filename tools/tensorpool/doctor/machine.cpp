#include "doctor/machine.hpp"

#include <fcntl.h>
#include <langinfo.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include <tensorpool/system_memory.hpp>

#include "doctor/first_touch.hpp"
#include "page_assets.hpp"

namespace tensorpool::command {
namespace {

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
