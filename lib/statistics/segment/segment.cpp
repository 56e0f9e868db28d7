#include "statistics/segment/segment.hpp"

#include "base/never_destroyed.hpp"
#include "statistics/records/record_values.hpp"
#include "statistics/timeline/timeline_ring.hpp"

namespace tensorpool::statistics {
namespace {

using base::read;
using base::write;

Counter* as_counters(SegmentHeader& header, std::size_t offset) noexcept {
    return reinterpret_cast<Counter*>(reinterpret_cast<std::byte*>(&header) + offset);
}
const Counter* as_counters(const SegmentHeader& header, std::size_t offset) noexcept {
    return as_counters(const_cast<SegmentHeader&>(header), offset);
}

Counter& word_at(Counter* record, std::size_t offset) noexcept {
    return record[offset / sizeof(Counter)];
}

void name_record(const RecordKind& kind, Counter* record, std::string_view name) noexcept {
    if (kind.name == RecordKind::none) return;
    store_text({&word_at(record, kind.name), Name::bytes / sizeof(Counter)}, name);
}

std::size_t used_bytes_of(const SegmentHeader& header, std::size_t index) noexcept {
    const Region& region = header.regions[index];
    // Of the timeline, `used` is 0.
    const std::size_t used = index == index_of<EntryRecord>
                                 ? std::min<std::size_t>(read(header.entries), entry_count)
                                 : read(region.used);
    return used * read(region.record_bytes);
}

/// Returns whether the system has the pages that this segment uses, for one at `base`.
bool has_pages_of(const SegmentHeader& used, std::byte* base) noexcept {
    static_assert(text_begin == header_bytes);
    bool has = has_pages(base, read(used.text_end));
    for (std::size_t i = 0; has && i != read(used.kinds); ++i) {
        const std::size_t bytes = used_bytes_of(used, i);
        has = bytes == 0 || has_pages(base + read(used.regions[i].offset), bytes);
    }
    return has;
}

/// Gets the pages into which the used part of a segment is copied; of private memory, this is
/// cheaper than a fault for each. Uses private memory if the system has none for a file.
void get_pages(SegmentMemory& source, platform::SharedMemory& memory,
               const SegmentHeader& used) noexcept {
    if (memory.address == nullptr) return;
    if (has_pages_of(used, static_cast<std::byte*>(memory.address)) || memory.file < 0) return;
    memory = source.get_private_instead(memory);
}

void describe_region(Region& region, const RecordKind& kind, std::size_t offset,
                     std::size_t bytes) noexcept {
    write(region.offset, offset);
    write(region.record_bytes, kind.record_bytes);
    const std::size_t room = (bytes - std::min(bytes, offset)) / kind.record_bytes;
    write(region.record_count, std::min<std::size_t>(kind.count, room));
    if (kind.table == nullptr) return;
    store_text(region.name, kind.table->name);
}

/// Returns whether the system has the pages that a new segment at `base` uses.
bool has_first_pages(std::byte* base) noexcept {
    return has_pages(base, header_bytes) &&
           has_pages(base + offset_of<PoolRecord>, sizeof(PoolRecord));
}

/// Returns whether there is a description, for which there must be memory.
bool describe_in_text(SegmentHeader& header, Region& region, const RecordTable& table) noexcept {
    std::size_t bytes = sizeof table;
    for_each_list(table, [&](const auto& list) { bytes += list.size_bytes(); });
    const std::size_t begin = read(header.text_end);
    if (bytes > text_limit - begin) return false;
    auto* text = reinterpret_cast<char*>(&header) + begin;
    if (!has_pages(text, bytes)) return false;
    RecordTable copy = table;
    for_each_list(copy, []<class Item>(std::span<const Item>& list) {
        list = {static_cast<const Item*>(nullptr), list.size()};  // the sizes only
    });
    std::memcpy(text, &copy, sizeof copy);
    text += sizeof copy;
    for_each_list(table, [&](const auto& list) {
        if (!list.empty()) std::memcpy(text, list.data(), list.size_bytes());
        text += list.size_bytes();
    });
    write(region.text_offset, begin);
    write(region.text_bytes, bytes);
    // Whole words, so that a fork copies all of it.
    write(header.text_end, base::align_up(begin + bytes, sizeof(Counter)));
    return true;
}

void describe_process(SegmentHeader& header) noexcept {
    const platform::ProcessIdentity process = platform::identify_process();
    write(header.process, process.number);
    write(header.process_space, process.name_space);
    write(header.start_ticks, process.start_ticks);
    store_name(header.process_name, process.name);
}

/// Copies word by word, because other threads continue to count.
void copy_words(Counter* to, const Counter* from, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) write(to[i], read(from[i]));
}

bool counts_frees(const RecordKind& kind) noexcept {
    return kind.counts_frees != nullptr ||
           (kind.table != nullptr && std::ranges::any_of(kind.table->fields, &Field::is_first));
}

bool counts_frees(const RecordKind& kind, std::size_t word) noexcept {
    if (kind.counts_frees != nullptr) return kind.counts_frees(word);
    if (kind.table == nullptr) return false;
    const std::size_t at = word * sizeof(Counter);
    return std::ranges::any_of(kind.table->fields, [&](const Field& field) {
        return field.is_first && field.word <= at &&
               at < field.word + sizeof(Counter) * field.words;
    });
}

/// Copies the counters of frees of all records before any others, because other threads continue to
/// count. In the copy, no block is freed that is not also allocated.
void copy_records(const RecordKind& kind, SegmentHeader& to, const SegmentHeader& from,
                  std::size_t index) noexcept {
    const std::size_t words = kind.record_bytes / sizeof(Counter);
    const std::size_t used = read(from.regions[index].used);  // 0 for the timeline
    const std::size_t offset = read(from.regions[index].offset);
    Counter* const records = as_counters(to, offset);
    const Counter* const originals = as_counters(from, offset);
    if (!counts_frees(kind)) return copy_words(records, originals, used * words);
    for (const bool frees : {true, false}) {
        for (std::size_t word = 0; word != words; ++word) {
            if (counts_frees(kind, word) != frees) continue;
            for (std::size_t at = word; at < used * words; at += words) {
                // Acquire pairs with `add_release`, as in a reader.
                write(records[at], originals[at].load(std::memory_order_acquire));
            }
        }
    }
}

/// Copies the used part of the segment at `from` to the zeros at `to`. The magic is not copied;
/// readers wait for it.
void copy_used(std::span<const RecordKind* const> kinds, std::byte* to,
               const SegmentHeader& from) noexcept {
    auto& copy = *reinterpret_cast<SegmentHeader*>(to);
    copy_words(as_words(copy) + 1, as_words(from) + 1, words_of<SegmentHeader> - 1);
    // The number from the copy, because entries continue to be written.
    const std::uint64_t head = read(copy.entries);
    copy_entries({records_in<EntryRecord>(from), std::min<std::size_t>(head, entry_count)},
                 {records_in<EntryRecord>(copy), entry_count}, head);
    const std::size_t count = std::min<std::size_t>(read(copy.kinds), kinds.size());
    // Parts come before what they are parts of: bytes in use by a stream are part of the capacity
    // of its device.
    for (const bool parts : {true, false}) {
        for (std::size_t i = 0; i != count; ++i) {
            if (kinds[i]->is_part == parts) copy_records(*kinds[i], copy, from, i);
        }
    }
    // Descriptions do not change once they are there.
    std::memcpy(to + text_begin, as_counters(from, text_begin), read(copy.text_end) - text_begin);
}

void let_go_of(const platform::SharedMemory& memory, std::size_t bytes) noexcept {
    if (memory.address == nullptr) return;
    platform::close_shared_memory(memory);
    platform::unmap(memory.address, bytes);
}

/// Writes the used part of the segment with its own values, so that its pages become private to the
/// process.
void write_used(SegmentHeader& header) noexcept {
    const auto rewrite = [&](std::size_t offset, std::size_t bytes) {
        Counter* const words = as_counters(header, offset);
        copy_words(words, words, bytes / sizeof(Counter));
    };
    rewrite(0, header_bytes);
    rewrite(text_begin, read(header.text_end) - text_begin);
    for (std::size_t i = 0; i != read(header.kinds); ++i) {
        // The parent continues to write entries.
        const std::size_t bytes = i == index_of<EntryRecord> ? entry_count * sizeof(EntryRecord)
                                                             : used_bytes_of(header, i);
        rewrite(read(header.regions[i].offset), bytes);
    }
}

}  // namespace

void store_text(std::span<Counter> to, std::string_view text) noexcept {
    text = base::cut_utf8(text, to.size_bytes() - 1);
    for (Counter& counter : to) {
        std::uint64_t word = 0;
        std::memcpy(&word, text.data(), std::min(text.size(), sizeof word));
        text.remove_prefix(std::min(text.size(), sizeof word));
        write(counter, word);
    }
}

void load_text(std::span<const Counter> from, char* to) noexcept {
    for (const Counter& counter : from) {
        const std::uint64_t word = counter.load(std::memory_order_relaxed);
        std::memcpy(to, &word, sizeof word);
        to += sizeof word;
    }
    to[-1] = '\0';
}

bool has_pages(void* begin, std::size_t bytes) noexcept {
    const std::size_t unit = platform::page_bytes();
    auto* const first =
        static_cast<std::byte*>(begin) - reinterpret_cast<std::uintptr_t>(begin) % unit;
    const auto end = static_cast<std::byte*>(begin) + bytes;
    return platform::get_shared_pages(first,
                                      base::align_up(static_cast<std::size_t>(end - first), unit));
}

Segment& segment() noexcept {
    return base::the_only<Segment>.get();
}

const Region& SegmentHeader::find_region(const RecordKind& kind) const noexcept {
    static const Region none{};
    Region wanted{};
    store_text(wanted.name, kind.table->name);
    const std::size_t count =
        std::min<std::size_t>(kinds.load(std::memory_order_acquire), max_kinds);
    for (std::size_t i = first_kind_count; i < count; ++i) {
        if (std::ranges::equal(regions[i].name, wanted.name, {}, read, read)) return regions[i];
    }
    return none;
}

void describe_layout(SegmentHeader& header, std::size_t bytes) noexcept {
    write(header.version, segment_version);
    write(header.bytes, segment_bytes);
    write(header.header_bytes, header_bytes);
    for_each_first_kind([&]<class Record>() {
        Region& region = header.region<Record>();
        describe_region(region, Record::layout, offset_of<Record>, bytes);
        if constexpr (Record::layout.first == First::other) {
            write(region.used, 1);
            store_name(records_in<Record>(header)->name, "other");
        }
    });
    write(header.kinds, first_kind_count);
    write(header.end, first_end);
    write(header.text_end, text_begin);
    store_name(header.library_version, TENSORPOOL_VERSION);
}

void describe_kind(SegmentHeader& header, const RecordKind& kind, std::size_t bytes) noexcept {
    const std::size_t index = read(header.kinds);
    const std::size_t begin = read(header.end);
    Region& region = header.regions[index];
    describe_region(region, kind, begin, bytes);
    if (read(region.record_count) == kind.count && describe_in_text(header, region, *kind.table)) {
        write(header.end, begin + kind.count * kind.record_bytes);
    } else {
        write(region.record_count, 0);
    }
    header.kinds.store(index + 1, std::memory_order_release);
}

// REQUIRES: the mutex is held.
SegmentHeader* Segment::made() noexcept {
    if (SegmentHeader* const known = base_.load(std::memory_order_relaxed)) return known;
    platform::SharedMemory memory = memory_.get();
    if (memory.file >= 0 && !has_first_pages(static_cast<std::byte*>(memory.address))) {
        memory = memory_.get_private_instead(memory);
    }
    if (memory.address == nullptr) return nullptr;
    memory_.use(memory);
    auto* const header = new (memory.address) SegmentHeader;
    describe_layout(*header, memory_.bytes());
    describe_kinds(*header);
    describe_process(*header);
    write(header->made_ns, platform::monotonic_clock_ns());
    write(header->made_unix_ns, platform::wall_clock_ns());
    show_left_out(*header);
    header->magic.store(segment_magic, std::memory_order_release);
    base_.store(header, std::memory_order_release);
    return header;
}

// REQUIRES: the mutex is held. A kind beyond the last index has no records.
std::size_t Segment::index_for(const RecordKind& kind) noexcept {
    const std::span<const RecordKind* const> known = kinds();
    const auto found = std::ranges::find(known, &kind);
    const auto index = static_cast<std::size_t>(found - known.begin());
    if (found != known.end() || index == max_kinds) return index;
    kinds_[index] = &kind;
    kind_count_.store(index + 1, std::memory_order_release);
    if (SegmentHeader* const header = this->header()) describe_kinds(*header);
    return index;
}

void Segment::describe_kinds(SegmentHeader& header) noexcept {
    while (read(header.kinds) < kinds().size()) {
        describe_kind(header, *kinds()[read(header.kinds)], memory_.bytes());
    }
}

/// Returns a free record with its name, which is zero otherwise.
Counter* Segment::take(SegmentHeader& header, std::size_t index, std::string_view name) noexcept {
    if (index == max_kinds) return nullptr;
    const RecordKind& kind = *kinds_[index];
    Counter* const record = find_free(header, index);
    if (record == nullptr) return nullptr;
    if (kind.first == First::other) {
        name_record(kind, as_counters(header, read(header.regions[index].offset)), "other");
    }
    name_record(kind, record, name);
    return record;
}

/// Returns the lowest free record that is not `other`, or the one that was removed last. If none is
/// free, takes a new one.
Counter* Segment::find_free(SegmentHeader& header, std::size_t index) noexcept {
    const RecordKind& kind = *kinds_[index];
    Region& region = header.regions[index];
    Counter* const records = as_counters(header, read(region.offset));
    const auto record_at = [&](std::size_t at) {
        return records + at * (kind.record_bytes / sizeof(Counter));
    };
    const std::size_t first = kind.first == First::record ? 0 : 1;
    const std::size_t used = std::max<std::size_t>(read(region.used), first);
    std::uint64_t& free = first_free_[index];
    if (kind.next != RecordKind::none) {
        if (free != 0) {
            Counter* const record = record_at(free - 1);
            free = word_at(record, kind.next).exchange(0, std::memory_order_relaxed);
            return record;
        }
    } else {
        for (free = std::max<std::uint64_t>(free, first + 1); free <= used; ++free) {
            Counter* const record = record_at(free - 1);
            if (read(word_at(record, kind.id)) != 0) continue;
            ++free;
            return record;
        }
    }
    if (used >= read(region.record_count)) return nullptr;
    Counter* const record = record_at(used);
    Counter* const touched = read(region.used) == 0 ? records : record;
    const auto bytes = static_cast<std::size_t>(record_at(used + 1) - touched) * sizeof(Counter);
    if (!has_pages(touched, bytes)) return nullptr;
    write(region.used, used + 1);
    return record;
}

void Segment::put_back(const RecordKind& kind, Counter* record) noexcept {
    const std::lock_guard guard(mutex_);
    SegmentHeader& header = *this->header();
    const StructureChange change(header);
    const std::size_t words = kind.record_bytes / sizeof(Counter);
    for (std::size_t i = 0; i != words; ++i) write(record[i], 0);
    const std::size_t index = index_for(kind);
    const Counter* const records = as_counters(header, read(header.regions[index].offset));
    const std::uint64_t number = static_cast<std::size_t>(record - records) / words + 1;
    std::uint64_t& first = first_free_[index];
    if (kind.next != RecordKind::none) {
        write(word_at(record, kind.next), first);
        first = number;
    } else {
        first = std::min(first, number);
    }
}

// The caller fills it, and then counts it as used.
Counter* Segment::append_to(SegmentHeader& header, const RecordKind& kind) noexcept {
    const std::size_t index = index_for(kind);
    const Region& region = header.regions[index];
    const std::uint64_t used = read(region.used);
    if (used >= read(region.record_count)) return nullptr;
    Counter* const record = as_counters(header, read(region.offset) + used * kind.record_bytes);
    return has_pages(record, kind.record_bytes) ? record : nullptr;
}

Counter* Segment::find_or_add(const RecordKind& kind, std::string_view name) noexcept {
    const std::lock_guard guard(mutex_);
    SegmentHeader* const header = made();
    if (header == nullptr) return nullptr;
    const std::size_t index = index_for(kind);
    if (index == max_kinds) return nullptr;
    Region& region = header->regions[index];
    Counter* const records = as_counters(*header, read(region.offset));
    Name wanted{};
    store_name(wanted, name);
    const std::size_t words = kind.record_bytes / sizeof(Counter);
    for (std::size_t i = 1; i < read(region.used); ++i) {
        const Counter* const has = &word_at(records + i * words, kind.name);
        if (std::equal(std::begin(wanted.words), std::end(wanted.words), has,
                       [](const Counter& a, const Counter& b) { return read(a) == read(b); })) {
            return records + i * words;
        }
    }
    const StructureChange change(*header);
    if (Counter* const record = take(*header, index, name)) {
        write(word_at(record, kind.id), next_id());
        return record;
    }
    ++left_out_[index];
    show_left_out(*header);
    return read(region.used) == 0 ? nullptr : records;
}

std::uint64_t sum_of(std::string_view field) noexcept {
    std::uint64_t sum = 0;
    segment().for_each_record([&](const RecordKind& kind, const Counter* record) {
        if (kind.table == nullptr) return;
        const auto found = std::ranges::find_if(
            kind.table->fields, [&](const Field& one) { return one.name == field; });
        if (found == kind.table->fields.end()) return;
        const auto index = static_cast<std::size_t>(found - kind.table->fields.begin());
        sum += values_of(*kind.table, record, false)[index];
    });
    return sum;
}

void Segment::count_left_out(const RecordKind& kind, bool more) noexcept {
    const std::lock_guard guard(mutex_);
    const std::size_t index = index_for(kind);
    if (index == max_kinds) return;
    left_out_[index] += more ? 1 : ~std::uint64_t{0};
    if (SegmentHeader* const header = this->header()) show_left_out(*header);
}

void Segment::show_left_out(SegmentHeader& header) noexcept {
    for (std::size_t i = 0; i != read(header.kinds); ++i) {
        write(header.regions[i].left_out, left_out_[i]);
    }
}

// Entries are written without a lock. The pages of the first pass through the ring are therefore
// requested as it reaches them.
bool Segment::has_page_of_next_entry() noexcept {
    constexpr std::size_t entries_a_page = 4096 / sizeof(EntryRecord);
    static_assert(offset_of<EntryRecord> % 4096 == 0);
    const std::uint64_t written = read(header()->entries);
    return written >= entry_count || written % entries_a_page != 0 ||
           has_pages(timeline() + written, sizeof(EntryRecord));
}

EntryRecord* Segment::timeline() noexcept {
    SegmentHeader* const header = this->header();
    return header == nullptr ? nullptr : records_in<EntryRecord>(*header);
}

// The parent makes the child's memory, so that the content is copied once. Private memory is
// separated by the fork itself.
void Segment::before_fork() noexcept {
    mutex_.lock();
    forking_thread_ = platform::current_thread_id();
    if (memory_.used().file < 0) return;
    of_child_ = memory_.get_without_path();
    get_pages(memory_, of_child_, *header());
    if (of_child_.address != nullptr) {
        copy_used(kinds(), static_cast<std::byte*>(of_child_.address), *header());
    }
}

void Segment::after_fork_in_parent() noexcept {
    let_go_of(std::exchange(of_child_, {}), memory_.bytes());
    mutex_.unlock();
}

// The child has counted nothing yet, and must never count in the memory of its parent.
void Segment::after_fork_in_child() noexcept {
    if (memory_.used().file >= 0) part_from_parent();
    if (SegmentHeader* const header = this->header()) {
        describe_process(*header);
        renumber_thread(*header);
        header->magic.store(segment_magic, std::memory_order_release);
    }
    mutex_.unlock();
}

// The only thread of the child has a new number.
void Segment::renumber_thread(SegmentHeader& header) noexcept {
    const std::uint64_t now = platform::current_thread_id();
    for (std::size_t i = 0; i != kinds().size(); ++i) {
        const RecordKind& kind = *kinds_[i];
        if (kind.thread == RecordKind::none) continue;
        const Region& region = header.regions[i];
        for (std::size_t at = 0; at != read(region.used); ++at) {
            Counter* const record =
                as_counters(header, read(region.offset) + at * kind.record_bytes);
            Counter& thread = word_at(record, kind.thread);
            if (read(thread) == forking_thread_) write(thread, now);
        }
    }
}

void Segment::part_from_parent() noexcept {
    SegmentHeader* const header = this->header();
    platform::SharedMemory memory = std::exchange(of_child_, {});
    if (memory.address != nullptr && memory_.has_path()) {
        platform::SharedMemory file = memory_.get();
        const auto& from = *static_cast<const SegmentHeader*>(memory.address);
        get_pages(memory_, file, from);
        if (file.address != nullptr) {
            copy_used(kinds(), static_cast<std::byte*>(file.address), from);
            let_go_of(std::exchange(memory, file), memory_.bytes());
        }
    }
    const bool parted = memory.address != nullptr
                            ? platform::replace_mapping(header, memory.address, memory_.bytes())
                            : part_in_place();
    if (!parted)
        platform::fail("fork: the child's statistics cannot be separated from its parent's");
    // If there was no copy, the parent may have been in the middle of a change.
    if (read(header->epoch) % 2 != 0) write(header->epoch, read(header->epoch) + 1);
    platform::close_shared_memory(memory_.used());
    memory.address = header;
    memory_.use(memory);
}

// In a child that was made without the handlers of a fork. No lock is taken.
void Segment::part_without_locks() noexcept {
    if (memory_.used().file >= 0) (void)part_in_place();
}

// Used if no address space is left for a copy.
bool Segment::part_in_place() noexcept {
    if (!platform::make_private(header(), memory_.used(), memory_.bytes())) return false;
    write_used(*header());
    return true;
}

}  // namespace tensorpool::statistics
