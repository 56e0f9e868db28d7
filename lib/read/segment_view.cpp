#include "read/segment_view.hpp"

#include <cstring>
#include <new>

#include "platform/platform.hpp"

namespace tensorpool::read {
namespace {

using namespace statistics;

const SegmentProblem cannot_map = {AttachFailure::system,
                                   "the system could not map its segment; see `ulimit -v`"};
const SegmentProblem was_cut = {AttachFailure::damaged,
                                "its segment has been truncated; restart the "
                                "process to read it again"};

/// A table with a copy of the lists that it refers to.
struct DescribedTable {
    RecordTable table = {};
    std::vector<std::shared_ptr<void>> lists;
};

/// Checks every offset and every index.
class Bounds {
public:
    Bounds(const RecordTable& table, std::size_t record_bytes) noexcept
        : table_(table), bytes_(record_bytes) {}

    bool hold() const noexcept {
        return !table_.name.empty() && !table_.fields.empty() &&
               table_.fields.size() <= max_fields && hold_for_fields() && hold_for_words() &&
               std::ranges::all_of(table_.rules, [&](const Rule& rule) { return holds(rule); }) &&
               std::ranges::all_of(table_.derivations,
                                   [&](const Rule& rule) { return holds(rule); }) &&
               std::ranges::all_of(table_.families,
                                   [&](const Family& one) {
                                       return count_of_values(one.values) <= Family::max_parts &&
                                              std::ranges::all_of(one.parts, [&](auto part) {
                                                  return is_field(part, false);
                                              });
                                   }) &&
               std::ranges::all_of(table_.columns, [&](const Column& one) {
                   return one.show <= Column::highest && is_field(one.value, true) &&
                          is_field(one.of, true);
               });
    }

private:
    bool is_field(std::size_t index, bool or_none) const noexcept {
        return index < table_.fields.size() || (or_none && index == no_field);
    }
    bool holds(const Rule& rule) const noexcept {
        return is_field(rule.to, false) && is_field(rule.from, false);
    }
    bool lies_inside(std::size_t word, std::size_t bytes) const noexcept {
        return word == no_word || (word % 8 == 0 && word + bytes <= bytes_);
    }
    bool hold_for_fields() const noexcept {
        return std::ranges::all_of(table_.fields,
                                   [&](const Field& field) {
                                       return field.bits != 0 && field.bits <= 64 &&
                                              lies_inside(field.word, field.words * 8U);
                                   }) &&
               std::ranges::is_sorted(table_.fields, {}, &Field::use);
    }
    bool hold_for_words() const noexcept {
        const RecordTable& t = table_;
        return t.id_word != no_word && lies_inside(t.id_word, 8) &&
               lies_inside(t.name_word, Name::bytes) && lies_inside(t.choice.word, 8) &&
               (t.choice.word == no_word || count_of_values(t.choice.values) != 0) &&
               t.text.bytes <= max_text_bytes && t.text.bytes % 8 == 0 &&
               lies_inside(t.text.word, t.text.bytes) && is_field(t.parent, true) &&
               is_field(t.hits, true) && is_field(t.requests, true) && is_field(t.shown_if, true) &&
               is_field(t.ends_with, true) && t.parts_into + std::size_t{t.parts_bytes} <= bytes_ &&
               t.parts_into % 8 == 0 && t.parts_from % 8 == 0 &&
               t.parts_key % 8 == (t.parts.empty() ? t.parts_key % 8 : 0);
    }

    static constexpr std::size_t max_text_bytes = 64;
    const RecordTable& table_;
    std::size_t bytes_;
};

/// Returns a copy of the table of a kind that a segment carries. It contains no index and no offset
/// that leads outside, whatever the bytes are. Returns nullptr if they describe no records of this
/// size. Throws std::bad_alloc.
std::shared_ptr<const RecordTable> read_table(std::string_view bytes, std::size_t record_bytes) {
    const auto described = std::make_shared<DescribedTable>();
    RecordTable& table = described->table;
    if (bytes.size() < sizeof table) return nullptr;
    std::memcpy(static_cast<void*>(&table), bytes.data(), sizeof table);
    bytes.remove_prefix(sizeof table);
    bool is_whole = true;
    for_each_list(table, [&]<class Item>(std::span<const Item>& list) {
        const std::size_t count = list.size();
        is_whole = is_whole && count <= bytes.size() / sizeof(Item);
        if (!is_whole) return;
        const auto items = std::make_shared<std::vector<Item>>(count);
        described->lists.push_back(items);
        if (count != 0) std::memcpy(items->data(), bytes.data(), count * sizeof(Item));
        bytes.remove_prefix(count * sizeof(Item));
        list = *items;
    });
    if (!is_whole || !Bounds(table, record_bytes).hold()) return nullptr;
    return {described, &table};
}

}  // namespace

SegmentView::~SegmentView() {
    if (map_ != nullptr) platform::unmap(const_cast<void*>(map_), segment_bytes);
    for (void* const copy : copies_) {
        if (copy != nullptr) platform::unmap(copy, segment_bytes);
    }
}

std::optional<SegmentProblem> SegmentView::open() {
    SegmentHeader header{};
    if (auto problem = read_header(file_, header)) return problem;
    // The size is checked again: the file could be truncated until it was sealed.
    if (file_.is_sealed() && file_.bytes() >= segment_bytes) {
        map_ = file_.map(segment_bytes);
        if (map_ == nullptr) return cannot_map;
        earlier_ = later_ = SegmentImage(map_);
        return std::nullopt;
    }
    for (void*& copy : copies_) {
        copy = platform::map(segment_bytes, platform::page_bytes());
        if (copy == nullptr) throw std::bad_alloc();
    }
    earlier_ = SegmentImage(copies_[0]);
    later_ = SegmentImage(copies_[1]);
    return std::nullopt;
}

std::optional<SegmentProblem> SegmentView::refresh() {
    if (is_copy()) {
        if (auto problem = copy(copies_[0], earlier_)) return problem;
        epoch_ = earlier_.header().epoch.load(std::memory_order_relaxed);
        return copy(copies_[1], later_);
    }
    if (auto problem = problem_of(later_.header())) return problem;
    // Pairs with the release store after a change: the whole change is visible.
    epoch_ = later_.header().epoch.load(std::memory_order_acquire);
    later_.count();
    earlier_ = later_;
    return std::nullopt;
}

bool SegmentView::is_steady() const noexcept {
    if (epoch_ % 2 != 0) return false;
    if (is_copy()) {
        SegmentHeader now{};
        return copy_header(&now) && now.epoch.load(std::memory_order_relaxed) == epoch_;
    }
    // Pairs with the release fence at the beginning of a change: a reader that saw any word of the
    // change sees the epoch.
    std::atomic_thread_fence(std::memory_order_acquire);
    return later_.header().epoch.load(std::memory_order_relaxed) == epoch_;
}

bool SegmentView::copy_header(void* to) const noexcept {
    return file_.read(0, to, sizeof(SegmentHeader)) == sizeof(SegmentHeader);
}

std::optional<SegmentProblem> SegmentView::copy(void* to, SegmentImage& image) const {
    if (!copy_header(to)) return was_cut;
    if (auto problem = problem_of(image.header())) return problem;
    image.count();
    const auto read = [&](const void* begin, std::size_t bytes) {
        auto* const into = static_cast<std::byte*>(to);
        const auto at = static_cast<std::size_t>(static_cast<const std::byte*>(begin) - into);
        return bytes == 0 || file_.read(at, into + at, bytes) == bytes;
    };
    for (const SegmentImage::Kind& kind : image.kinds()) {
        if (!read(kind.text.data(), kind.text.size()) ||
            !read(kind.records, kind.used * kind.record_bytes)) {
            return was_cut;
        }
    }
    return std::nullopt;
}

std::shared_ptr<const RecordTable> SegmentView::table(std::size_t kind) {
    if (kind >= later_.kinds().size()) return nullptr;
    tables_.resize(std::max(tables_.size(), kind + 1));
    std::shared_ptr<const RecordTable>& table = tables_[kind];
    const SegmentImage::Kind& described = later_.kinds()[kind];
    if (table == nullptr && described.record_bytes != 0) {
        table = read_table(described.text, described.record_bytes);
    }
    return table;
}

std::optional<SegmentProblem> SegmentView::refresh_timeline() {
    if (!is_copy()) return problem_of(later_.header());
    for (void* const copy : copies_) {
        if (!copy_header(copy)) return was_cut;
        const std::size_t bytes = entry_count * sizeof(EntryRecord);
        auto* const entries = static_cast<std::byte*>(copy) + offset_of<EntryRecord>;
        if (file_.read(offset_of<EntryRecord>, entries, bytes) != bytes) return was_cut;
    }
    drop_rewritten_entries();
    return problem_of(later_.header());
}

// The copy of an entry that is being rewritten may mix two entries. Its ticket changed before its
// words, so the later copy has a different ticket. Such an entry is treated as still being written.
void SegmentView::drop_rewritten_entries() noexcept {
    auto* const entries = const_cast<EntryRecord*>(earlier_.timeline().data());
    for (std::size_t index = 0; index < entry_count; ++index) {
        const auto after = later_.timeline()[index].ticket.load(std::memory_order_relaxed);
        Counter& ticket = entries[index].ticket;
        if (ticket.load(std::memory_order_relaxed) != after) {
            ticket.store(after | 1, std::memory_order_relaxed);
        }
    }
}

}  // namespace tensorpool::read
