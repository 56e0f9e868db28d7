#include "contest/contender.hpp"

#include <stdexcept>

#include "contest/child_process.hpp"
#include "contest/worker_line.hpp"

namespace tensorpool::photos {
namespace {

bool can_preload_tcmalloc() {
    bool loaded = false;
    const ChildOrder probe{{"--work", "probe"}, tcmalloc_library, true};
    const auto hear = [&](const std::string& line) {
        loaded = !parse_worker_line(line).text.empty();
    };
    try {
        run_self(probe, hear);
    } catch (const std::runtime_error&) {
        return false;  // such as under the address sanitizer, which wants to be loaded first
    }
    return loaded;
}

}  // namespace

std::vector<Contender> find_contenders() {
    std::vector<Contender> contenders{{"malloc", "malloc", ""}};
    if (can_preload_tcmalloc()) contenders.push_back({"tcmalloc", "malloc", tcmalloc_library});
    contenders.push_back({"tensorpool", "pool", ""});
    contenders.push_back({"context", "context", ""});
    return contenders;
}

}  // namespace tensorpool::photos
