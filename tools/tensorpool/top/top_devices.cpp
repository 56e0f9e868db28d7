#include "common/device_names.hpp"
#include "common/totals.hpp"
#include "top/top_tables.hpp"

namespace tensorpool::command {
namespace {

const std::vector<DeviceStatistics>* shown(const TopData& data) {
    return data.chosen && data.chosen->now ? &data.chosen->now->devices : nullptr;
}

}  // namespace

Table device_table(const TopData& data, std::uint64_t device, Sizes sizes) {
    if (shown(data) != nullptr) {
        for (const DeviceStatistics& one : *shown(data)) {
            if (one.id == device) return device_names_table(one, sizes);
        }
    }
    Table gone = device_names_table({}, sizes);
    gone.rows.clear();
    gone.keys.clear();
    return gone;
}

}  // namespace tensorpool::command
