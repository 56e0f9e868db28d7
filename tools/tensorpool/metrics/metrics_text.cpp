#include "metrics/metrics_text.hpp"

#include <prometheus/text_serializer.h>

#include <algorithm>
#include <iterator>

#include "metrics/exposition.hpp"
#include "metrics/snapshot_collectable.hpp"

namespace tensorpool::command {

std::string metrics_text(const std::vector<ProcessSnapshot>& snapshots,
                         const std::vector<MetricFamily>& more) {
    const SnapshotCollectable collectable([&] { return snapshots; });
    std::vector<prometheus::MetricFamily> families = collectable.Collect();
    std::ranges::move(to_exposition(more), std::back_inserter(families));
    return prometheus::TextSerializer().Serialize(families);
}

}  // namespace tensorpool::command
