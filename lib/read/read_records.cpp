#include "read/read_records.hpp"

#include "statistics/records/record_values.hpp"

namespace tensorpool::read {
namespace {

using namespace statistics;

using Record = RecordGroup::Record;
using Kind = SegmentImage::Kind;

std::uint64_t word_in(const Counter* record, std::size_t offset) noexcept {
    return record[offset / sizeof(Counter)].load(std::memory_order_relaxed);
}

template <std::size_t max_bytes>
std::string text_in(const Counter* record, std::size_t offset, std::size_t bytes) {
    char text[max_bytes] = {};
    if (bytes != 0) load_text({record + offset / sizeof(Counter), bytes / sizeof(Counter)}, text);
    return text;
}

/// Reads the records of one kind, and of the kind that is a part of them.
class Reader {
public:
    Reader(const SegmentImage& earlier, const SegmentImage& later, std::size_t index,
           const RecordTable& table)
        : earlier_(kind_in(earlier, index)), later_(kind_in(later, index)), table_(table) {}

    /// The kind of the parts, by its index.
    void use_parts(const SegmentImage& earlier, const SegmentImage& later,
                   std::size_t index) noexcept {
        const Kind parts = kind_in(later, index);
        const std::size_t end = table_.parts_from + std::size_t{table_.parts_bytes};
        if (end > parts.record_bytes || table_.parts_key + sizeof(Counter) > parts.record_bytes) {
            return;
        }
        earlier_parts_ = kind_in(earlier, index);
        later_parts_ = parts;
    }

    std::vector<Record> read() const {
        std::vector<Record> records;
        for (std::size_t index = 0; index != later_.used; ++index) {
            const Counter* const record = later_.record(index);
            const bool is_other = index == 0;
            if (is_other ? !table_.shows_other : word_in(record, table_.id_word) == 0) continue;
            Record made = read(index, is_other);
            if (is_other && later_.left_out == 0 && is_nothing(made)) continue;
            records.push_back(std::move(made));
        }
        // Numbers are given out in order. The record `other` has the number 0 and comes last.
        std::ranges::stable_sort(records, {}, [](const Record& one) { return one.id - 1; });
        return records;
    }

private:
    static Kind kind_in(const SegmentImage& image, std::size_t index) noexcept {
        return index < image.kinds().size() ? image.kinds()[index] : Kind();
    }
    static bool is_nothing(const Record& record) noexcept {
        return std::ranges::all_of(record.values, [](std::uint64_t value) { return value == 0; });
    }
    void add_parts(RecordValues& values, Reading reading, const Kind& parts,
                   std::uint64_t id) const noexcept {
        for (std::size_t i = 0; i != parts.used && id != 0; ++i) {
            const Counter* const part = parts.record(i);
            if (word_in(part, table_.parts_key) == id) values.add_part(reading, part);
        }
    }
    Record read(std::size_t index, bool is_other) const {
        const Counter* const record = later_.record(index);
        const std::uint64_t id = is_other ? 0 : word_in(record, table_.id_word);
        RecordValues values(table_);
        add_parts(values, Reading::first, earlier_parts_, id);
        if (index < earlier_.used) values.add(Reading::first, earlier_.record(index));
        add_parts(values, Reading::second, later_parts_, id);
        values.add(Reading::second, record);
        values.finish(record, is_other);
        Record made;
        made.id = id;
        if (table_.name_word != no_word) {
            made.name = text_in<Name::bytes>(record, table_.name_word, Name::bytes);
        }
        if (table_.text.word != no_word) {
            made.text = text_in<64>(record, table_.text.word, table_.text.bytes);
        }
        made.choice = static_cast<unsigned>(choice_of(table_, record));
        made.values.assign(values.all().begin(), values.all().end());
        if (is_other && table_.fields.front().name == "id") made.values.front() = 0;
        return made;
    }

    Kind earlier_;
    Kind later_;
    Kind earlier_parts_;
    Kind later_parts_;
    const RecordTable& table_;
};

std::vector<std::uint64_t> ids_of(const std::vector<FoundRecords>& all, std::string_view kind) {
    std::vector<std::uint64_t> ids;
    for (const FoundRecords& found : all) {
        if (found.group.name != kind) continue;
        for (const Record& record : found.group.records) ids.push_back(record.id);
    }
    std::ranges::sort(ids);
    return ids;
}

/// Removes records that say nothing: see RecordTable::shown_if.
void remove_ended(RecordGroup& group, const std::vector<FoundRecords>& all) {
    const RecordTable& table = *group.table;
    if (table.shown_if == no_field) return;
    const std::vector<std::uint64_t> living = ids_of(all, table.ends_with_kind);
    std::erase_if(group.records, [&](const Record& record) {
        if (record.values[table.shown_if] != 0 || record.choice == table.stays) return false;
        if (table.ends_with == no_field) return true;
        const std::uint64_t needed = record.values[table.ends_with];
        return needed != 0 && !std::ranges::binary_search(living, needed);
    });
}

}  // namespace

std::vector<FoundRecords> read_records(SegmentView& view) {
    const SegmentImage& earlier = view.earlier();
    const SegmentImage& later = view.later();
    std::vector<std::shared_ptr<const RecordTable>> tables(later.kinds().size());
    for (std::size_t i = first_kind_count; i < tables.size(); ++i) tables[i] = view.table(i);
    std::vector<FoundRecords> all;
    for (std::size_t i = first_kind_count; i < tables.size(); ++i) {
        if (tables[i] == nullptr) continue;
        const RecordTable& table = *tables[i];
        Reader reader(earlier, later, i, table);
        for (std::size_t parts = 0; parts != tables.size() && !table.parts.empty(); ++parts) {
            if (tables[parts] == nullptr || tables[parts]->name != table.parts) continue;
            reader.use_parts(earlier, later, parts);
        }
        FoundRecords& found = all.emplace_back();
        found.group.name = table.name;
        found.group.records = reader.read();
        found.group.table = tables[i];
        found.left_out = later.kinds()[i].left_out;
    }
    for (FoundRecords& found : all) remove_ended(found.group, all);
    return all;
}

Record make_record(const RecordTable& table, std::uint64_t id, const char* name,
                   std::span<const std::uint64_t> shown) {
    Record record;
    record.id = id;
    record.name = name;
    record.values.assign(shown.begin(), shown.end());
    record.values.resize(table.fields.size());
    apply_rules(table.derivations, record.values);
    return record;
}

}  // namespace tensorpool::read
