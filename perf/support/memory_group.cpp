#include "support/memory_group.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>

namespace perf {
namespace {

/// Returns the group of this process, relative to the root of the hierarchy; "" if the system has
/// no groups of version 1 for memory.
std::string own_group() {
    constexpr std::string_view controller = ":memory:";
    std::ifstream groups("/proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) {
        const std::size_t at = line.find(controller);
        if (at != std::string::npos) return line.substr(at + controller.size());
    }
    return {};
}

}  // namespace

MemoryGroup::MemoryGroup(const std::string& name) {
    const std::string own = own_group();
    if (own.empty()) {
        problem_ = "the system has no control groups of version 1 for memory";
        return;
    }
    folder_ = "/sys/fs/cgroup/memory" + own + "/" + name;
    if (mkdir(folder_.c_str(), 0755) != 0)
        problem_ = "mkdir " + folder_ + ": " + std::strerror(errno);
}

MemoryGroup::~MemoryGroup() {
    if (problem_.empty()) rmdir(folder_.c_str());
}

// Without swap in the system, the second file may be missing.
bool MemoryGroup::set_limit(std::size_t bytes) const {
    const bool is_set = write("memory.limit_in_bytes", bytes);
    (void)write("memory.memsw.limit_in_bytes", bytes);
    return is_set;
}

bool MemoryGroup::enter() const {
    return write("cgroup.procs", 0);  // 0 is the process that writes
}

std::size_t MemoryGroup::peak_bytes() const {
    std::size_t bytes = 0;
    std::ifstream(folder_ + "/memory.max_usage_in_bytes") >> bytes;
    return bytes;
}

bool MemoryGroup::write(const char* file, std::size_t value) const {
    std::ofstream stream(folder_ + "/" + file);
    stream << value << std::flush;
    return stream.good();
}

}  // namespace perf
