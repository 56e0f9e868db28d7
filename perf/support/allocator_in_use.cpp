#include "support/allocator_in_use.hpp"

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace perf {

std::string allocator_in_use() {
    const auto address = reinterpret_cast<std::uintptr_t>(&std::malloc);
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        std::uintptr_t begin = 0, end = 0;
        char dash = 0;
        std::istringstream(line) >> std::hex >> begin >> dash >> end;
        if (address < begin || address >= end) continue;
        return line.substr(line.rfind('/') + 1);
    }
    return "unknown";
}

}  // namespace perf
