#include <algorithm>

#include "common/cells.hpp"
#include "common/device_names.hpp"
#include "common/totals.hpp"
#include "top/top_tables.hpp"

namespace tensorpool::command {
namespace {

const std::vector<DeviceStatistics>* shown(const TopData& data) {
    return data.chosen && data.chosen->now ? &data.chosen->now->devices : nullptr;
}

DeviceRates rates_of(const ProcessRates& rates, std::uint64_t device) {
    const auto found =
        std::ranges::find_if(rates.devices, [&](const auto& one) { return one.device == device; });
    return found == rates.devices.end() ? DeviceRates{} : *found;
}

}  // namespace

Table devices_table(const TopData& data, Sizes sizes) {
    Table table;
    table.columns = {text_column("NAME", 12),
                     text_column("DEVICE", 6),
                     size_column("IN USE"),
                     size_column("CAPACITY"),
                     size_column("FREE"),
                     size_column("DEFERRED"),
                     part_column("HITS"),
                     count_column("ALLOC/s"),
                     {"FAIL"},
                     size_column("PEAK"),
                     size_column("HIGHEST"),
                     size_column("LIMIT"),
                     {"SLABS"},
                     {"STREAMS"},
                     count_column("WAITS"),
                     text_column("KIND", 7)};
    if (shown(data) == nullptr) return table;
    static constexpr const char* kinds[] = {"caching", "pinned", "host"};
    const auto& watched = *data.chosen;
    const ProcessRates rates =
        watched.before ? difference(*watched.before, *watched.now) : ProcessRates{};
    for (const DeviceStatistics& device : *shown(data)) {
        const auto kind = static_cast<unsigned>(device.kind);
        table.rows.push_back(
            {text_cell(device.name), text_cell(device.device),
             size_cell(device.in_use_bytes, sizes), size_cell(device.capacity_bytes, sizes),
             size_cell(device.free_bytes, sizes), size_cell(device.deferred_bytes, sizes),
             part_cell(device.parked_hits + device.free_hits, device.allocations),
             count_cell(rates_of(rates, device.id).allocations), count_cell(device.failures),
             size_cell(device.peak_in_use_bytes, sizes),
             size_cell(data.highest.get(device_key(device.id)), sizes),
             limit_cell(device.limit_bytes, sizes), count_cell(device.slabs),
             number_cell(device.streams), count_cell(device.synchronizations),
             text_cell(kind < 3 ? kinds[kind] : "?")});
        table.keys.push_back(std::to_string(device.id));
    }
    return table;
}

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
