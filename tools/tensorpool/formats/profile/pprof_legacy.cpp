#include <algorithm>

#include "formats/heap_text.hpp"
#include "formats/profile/formats.hpp"

namespace tensorpool::command::profile {

std::string to_pprof_legacy(const NamedProfile& named) {
    NamedHeap heap;
    for (const ProfileSite& site : named.profile.sites) {
        std::vector<std::string> calls = stack_of(named, site);
        std::ranges::reverse(calls);
        heap.add({.blocks = blocks_of(site, named.value),
                  .bytes = bytes_of(site, named.value),
                  .all_blocks = blocks_of(site, Value::allocated),
                  .all_bytes = site.allocated_bytes},
                 calls);
    }
    return heap.text("heapprofile");
}

}  // namespace tensorpool::command::profile
