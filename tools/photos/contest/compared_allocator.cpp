#include "contest/compared_allocator.hpp"

#include <stdexcept>

#include "contest/child_process.hpp"
#include "contest/worker_line.hpp"

namespace tensorpool::photos {
namespace {

bool can_preload_tcmalloc() {
    bool loaded = false;
    const ChildOrder probe{{"--work", "probe"}, tcmalloc_library, true};
    const auto read_line = [&](const std::string& line) {
        loaded = !parse_worker_line(line).text.empty();
    };
    try {
        run_self(probe, read_line);
    } catch (const std::runtime_error&) {
        return false;  // such as under AddressSanitizer, which must be loaded first
    }
    return loaded;
}

}  // namespace

std::vector<ComparedAllocator> find_allocators() {
    std::vector<ComparedAllocator> allocators{{"malloc", "malloc", ""}};
    if (can_preload_tcmalloc()) allocators.push_back({"tcmalloc", "malloc", tcmalloc_library});
    allocators.push_back({"tensorpool", "pool", ""});
    allocators.push_back({"context", "context", ""});
    return allocators;
}

}  // namespace tensorpool::photos
