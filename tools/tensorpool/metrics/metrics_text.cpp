#include "metrics/metrics_text.hpp"

#include <prometheus/text_serializer.h>

#include "metrics/snapshot_collectable.hpp"

namespace tensorpool::command {

std::string metrics_text(const std::vector<ProcessSnapshot>& snapshots) {
    const SnapshotCollectable collectable([&] { return snapshots; });
    return prometheus::TextSerializer().Serialize(collectable.Collect());
}

}  // namespace tensorpool::command
