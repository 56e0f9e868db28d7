#pragma once

#include <cstddef>
#include <string_view>

#include "statistics/records/record_table.hpp"
#include "statistics/segment/segment_layout.hpp"

/// A sample of a kind of record that lies in a folder of its own: queues of batches. A further
/// counter is a word here and a line in `fields`, and counts where it happens.
namespace tensorpool::lab {

struct alignas(64) QueueRecord {
    statistics::Counter id;
    statistics::Name name;
    statistics::Counter state;
    statistics::Counter waiting_bytes;
    statistics::Counter limit_bytes;
    statistics::Counter batches;
    statistics::Counter dropped;

    static const statistics::RecordKind layout;
};

namespace queues {

using enum statistics::MetricKind;
using statistics::Column;
using statistics::Field;
using Of = QueueRecord;

inline constexpr Field fields[] = {
    {"id", "number", gauge, "Number that no other object of the process has.", "",
     offsetof(Of, id)},
    {"waiting_bytes", "bytes", gauge, "Bytes of batches that wait.", "lab_queue_waiting_bytes",
     offsetof(Of, waiting_bytes)},
    {"limit_bytes", "bytes", gauge, "Most bytes that may wait.", "", offsetof(Of, limit_bytes)},
    {"batches", "batches", total, "Batches that came.", "lab_queue_batches_total",
     offsetof(Of, batches)},
    {"dropped", "batches", total, "Batches that were dropped.", "lab_queue_dropped_total",
     offsetof(Of, dropped)},
};
inline constexpr statistics::IndexOf<fields> at;
inline constexpr statistics::Rule rules[] = {
    {statistics::Rule::at_most_limit, at("waiting_bytes"), at("limit_bytes")},
};
inline constexpr Column columns[] = {
    {"QUEUE", Column::name},
    {"STATE", Column::choice},
    {"WAITING", Column::size, at("waiting_bytes")},
    {"FILLED", Column::part, at("waiting_bytes"), at("limit_bytes")},
    {"BATCHES", Column::count, at("batches")},
};
inline constexpr statistics::RecordTable table = {
    .name = "queues",
    .of = "queue",
    .label = "queue",
    .title = "queues of batches",
    .choice = {"state", offsetof(Of, state), "open|closed"},
    .fields = fields,
    .rules = rules,
    .columns = columns};

}  // namespace queues

inline constexpr statistics::RecordKind QueueRecord::layout =
    statistics::kind_of<QueueRecord>(16, queues::table);

}  // namespace tensorpool::lab
