#pragma once

/// @file
/// Records of any kind, with the description that their process gives of them: for programs that
/// show kinds they do not know.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tensorpool/export.hpp>

namespace tensorpool {

namespace statistics {
struct RecordTable;
}

struct ProcessSnapshot;

/// The records of one kind, such as all budgets of a process, and the kind's description.
struct RecordGroup {
    /// One record.
    struct Record {
        /// A number that no other record of the process has; 0 for the sum of those without one.
        std::uint64_t id = 0;
        /// The record's name.
        std::string name;
        /// A text, such as the device of an allocator; "" if the kind has none.
        std::string text;
        /// The number of the record's choice, such as its state.
        unsigned choice = 0;
        /// The values, in the order of the description.
        std::vector<std::uint64_t> values;
    };

    /// The name of the list in JSON, such as "budgets".
    std::string name;
    /// The description. It is not null.
    std::shared_ptr<const statistics::RecordTable> table;
    /// The records, in the order in which they were made.
    std::vector<Record> records;
};

/// Returns the records of a snapshot, by kind: those with structures of their own, whether there
/// are any or not, and then those of `ProcessSnapshot::others`. Pools and threads are not among
/// them. Throws std::bad_alloc.
TENSORPOOL_API std::vector<RecordGroup> record_groups(const ProcessSnapshot& snapshot);

/// Returns the pools of a snapshot and their threads, in groups of these names. A thread that uses
/// several pools has a record for each. Throws std::bad_alloc.
TENSORPOOL_API std::vector<RecordGroup> pool_groups(const ProcessSnapshot& snapshot);

/// A column of a table of records.
struct RecordColumn {
    /// What the cells show.
    enum class Show : std::uint8_t {
        name,           ///< the name of the record, a text
        size,           ///< bytes
        size_if_known,  ///< bytes; 0 is unknown
        limit,          ///< bytes; 0 is none
        count,          ///< a number of things
        number,         ///< a number that identifies something
        growth,         ///< signed bytes
        part,           ///< `number` as a part of `whole`
        bar,            ///< the same, drawn
        seconds,        ///< nanoseconds, in seconds
        choice,         ///< a text of a few
        text,           ///< a text
        reference,      ///< the name of another record
        rate,           ///< the growth of `number` in a second, since an earlier snapshot
        highest,        ///< the highest `number` that the program has seen
    };

    /// The title, such as "IN USE".
    std::string title;
    /// What the cells show.
    Show show = Show::size;
    /// A sentence about the column; "" if the title says it.
    std::string about;
    /// The minimum number of characters of a cell on a screen; 0: that of what the cells show.
    std::uint8_t width = 0;
};

/// A cell of a table of records.
struct RecordCell {
    /// What it shows: what its column says, or a value of a row of its own.
    RecordColumn::Show show = RecordColumn::Show::size;
    /// The text, for columns of texts.
    std::string text;
    /// The value, for all others.
    std::uint64_t number = 0;
    /// What it is a part of.
    std::uint64_t whole = 0;
};

/// A row of a table of records.
struct RecordRow {
    /// The index of the record in RecordGroup::records, or of a value in
    /// RecordGroup::Record::values.
    std::size_t record = 0;
    /// The number of records above it, if the kind is a tree.
    std::size_t depth = 0;
    /// A cell for each column.
    std::vector<RecordCell> cells;
};

/// A table of records. Its first column has their names.
struct RecordGrid {
    /// What one of the records is, such as "budget".
    std::string of;
    /// The columns.
    std::vector<RecordColumn> columns;
    /// A row for each record, in the order of a tree if the kind has one; or for each value.
    std::vector<RecordRow> rows;
};

/// Returns the table of one of the groups of a snapshot. Throws std::bad_alloc.
TENSORPOOL_API RecordGrid to_grid(const std::vector<RecordGroup>& groups, const RecordGroup& group);
/// Returns a table of the values of one record: a row for each, with its name in JSON, and with
/// PyTorch's name if values of the kind have one. Throws std::bad_alloc.
TENSORPOOL_API RecordGrid to_details(const RecordGroup& group, const RecordGroup::Record& record);
/// Returns a table for people, with a title. It ends with a newline; "" without records.
TENSORPOOL_API std::string to_text(const std::vector<RecordGroup>& groups,
                                   const RecordGroup& group);
/// Returns a JSON array with an object for each record.
TENSORPOOL_API std::string to_json(const RecordGroup& group);
/// Returns a JSON array with the table of each group, for pages that draw any kind: its name and
/// title, its columns, and its rows: the number and the index of the record, its depth in a tree,
/// and its cells, which are texts, numbers, or a part and its whole.
TENSORPOOL_API std::string tables_json(const std::vector<RecordGroup>& groups);

}  // namespace tensorpool
