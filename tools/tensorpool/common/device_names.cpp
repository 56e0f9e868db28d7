#include "common/device_names.hpp"

#include <algorithm>
#include <initializer_list>

#include <tensorpool/metrics.hpp>

#include "common/cells.hpp"

namespace tensorpool::command {
namespace {

/// PyTorch's name for a metric, without its suffix: "allocated_bytes" of
/// "allocated_bytes.all.current".
std::string pytorch_name(std::string_view metric) {
    const auto all = describe_metrics();
    const auto found = std::ranges::find_if(all, [&](const MetricDescription& one) {
        return std::string_view(one.of) == "device" && one.name == metric;
    });
    const std::string_view name = found == all.end() ? "" : found->pytorch;
    return std::string(name.substr(0, name.find(".all.")));
}

/// Adds rows: our name, PyTorch's name, and up to four values.
class Rows {
public:
    Rows(Table& table, Sizes sizes) : table_(table), sizes_(sizes) {}

    /// `metric` is the metric whose PyTorch name is shown.
    void add(const char* ours, std::string_view metric, std::initializer_list<Cell> cells) {
        std::vector<Cell> row = {text_cell(ours), text_cell(pytorch_name(metric))};
        row.insert(row.end(), cells);
        row.resize(table_.columns.size());
        table_.rows.push_back(std::move(row));
        table_.keys.emplace_back(ours);
    }
    Cell size(std::uint64_t bytes) const { return size_cell(bytes, sizes_); }

private:
    Table& table_;
    Sizes sizes_;
};

void add_bytes(Rows& rows, const DeviceStatistics& d) {
    const auto size = [&](std::uint64_t bytes) { return rows.size(bytes); };
    rows.add("in use", "in_use_bytes",
             {size(d.in_use_bytes), size(d.peak_in_use_bytes), size(d.allocated_bytes),
              size(d.deallocated_bytes)});
    rows.add("  requested", "requested_in_use_bytes",
             {size(d.requested_in_use_bytes), {}, size(d.requested_bytes), {}});
    rows.add("  and deferred", "peak_active_bytes",
             {size(d.in_use_bytes + d.deferred_bytes), size(d.peak_active_bytes)});
    rows.add("capacity", "capacity_bytes",
             {size(d.capacity_bytes), size(d.peak_capacity_bytes), size(d.grown_bytes),
              size(d.given_back_bytes)});
    rows.add("free", "free_bytes", {size(d.free_bytes)});
    rows.add("  split", "split_bytes", {size(d.split_bytes)});
    rows.add("  parked", "parked_bytes", {size(d.parked_bytes)});
    rows.add("deferred", "deferred_bytes", {size(d.deferred_bytes)});
}

void add_counts(Rows& rows, const DeviceStatistics& d) {
    const std::uint64_t blocks = d.allocations - std::min(d.allocations, d.deallocations);
    rows.add("blocks in use", "allocations",
             {count_cell(blocks), {}, count_cell(d.allocations), count_cell(d.deallocations)});
    rows.add("slabs", "slabs", {count_cell(d.slabs)});
    rows.add("growths", "growths", {{}, {}, count_cell(d.growths)});
    rows.add("give-backs", "give_backs", {{}, {}, {}, count_cell(d.give_backs)});
    rows.add("waits", "synchronizations", {{}, {}, count_cell(d.synchronizations)});
    rows.add("pressures", "pressures", {{}, {}, count_cell(d.pressures)});
    rows.add("failures", "failures", {{}, {}, count_cell(d.failures)});
}

}  // namespace

Table device_names_table(const DeviceStatistics& device, Sizes sizes) {
    Table table;
    table.columns = {text_column("OURS", 14), text_column("PYTORCH", 20), size_column("NOW"),
                     size_column("PEAK"),     size_column("TOTAL"),       size_column("FREED")};
    Rows rows(table, sizes);
    add_bytes(rows, device);
    add_counts(rows, device);
    return table;
}

}  // namespace tensorpool::command
