#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "arena/arena_table.hpp"
#include "device/device_table.hpp"
#include "limits/budget_table.hpp"
#include "plan/planned_table.hpp"
#include "platform/files/observed_file.hpp"
#include "rest/stash_table.hpp"
#include "statistics/scopes/scope_table.hpp"
#include "statistics/segment/segment.hpp"
#include "statistics/segment/segment_layout.hpp"

namespace tensorpool::testing {

inline void put(statistics::Counter& counter, std::uint64_t value) {
    counter.store(value, std::memory_order_relaxed);
}

/// A segment like that of a process, but written by the test: it may contain anything.
class FakeSegment {
public:
    enum class Sealed : bool { no, yes };

    /// `name` is the name of the file.
    explicit FakeSegment(Sealed sealed = Sealed::yes, const char* name = "fake")
        : file_(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
        using namespace statistics;
        if (file_ < 0 || ftruncate(file_, segment_bytes) != 0) throw std::runtime_error("memfd");
        base_ = mmap(nullptr, segment_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
        if (base_ == MAP_FAILED) throw std::runtime_error("mmap");
        if (sealed == Sealed::yes) fcntl(file_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
        describe();
    }
    ~FakeSegment() {
        munmap(base_, statistics::segment_bytes);
        close(file_);
    }
    FakeSegment(const FakeSegment&) = delete;
    FakeSegment& operator=(const FakeSegment&) = delete;

    statistics::SegmentHeader& header() { return *static_cast<statistics::SegmentHeader*>(base_); }
    statistics::PoolRecord& pool(std::size_t index) { return at<statistics::PoolRecord>(index); }
    statistics::ArenaRecord& arena(std::size_t index) { return at<statistics::ArenaRecord>(index); }
    statistics::DeviceRecord& device(std::size_t index) {
        return at<statistics::DeviceRecord>(index);
    }
    statistics::DeviceStreamRecord& device_stream(std::size_t index) {
        return at<statistics::DeviceStreamRecord>(index);
    }
    statistics::PlannedRecord& planned(std::size_t index) {
        return at<statistics::PlannedRecord>(index);
    }
    statistics::SiteRecord& site(std::size_t index) { return at<statistics::SiteRecord>(index); }
    statistics::FrameNameRecord& frame_name(std::size_t index) {
        return at<statistics::FrameNameRecord>(index);
    }
    statistics::CountersRecord& counters(std::size_t index) {
        return at<statistics::CountersRecord>(index);
    }
    statistics::ScopeRecord& scope(std::size_t index) { return at<statistics::ScopeRecord>(index); }
    statistics::StashRecord& stash(std::size_t index) { return at<statistics::StashRecord>(index); }
    statistics::BudgetRecord& budget(std::size_t index) {
        return at<statistics::BudgetRecord>(index);
    }
    statistics::EntryRecord& entry(std::size_t index) { return at<statistics::EntryRecord>(index); }

    statistics::PoolRecord& add_pool(const char* name, std::uint64_t id) {
        const auto index = header().region<statistics::PoolRecord>().used.fetch_add(1);
        put(pool(index).id, id);
        statistics::store_name(pool(index).name, name);
        return pool(index);
    }
    statistics::CountersRecord& add_counters(std::uint64_t pool_id, std::uint64_t thread) {
        const auto index = header().region<statistics::CountersRecord>().used.fetch_add(1);
        put(counters(index).pool, pool_id);
        put(counters(index).thread, thread);
        return counters(index);
    }
    statistics::ArenaRecord& add_arena(const char* name, std::uint64_t id, std::uint64_t kind) {
        const auto index = header().region<statistics::ArenaRecord>().used.fetch_add(1);
        put(arena(index).id, id);
        put(arena(index).kind, kind);
        statistics::store_name(arena(index).name, name);
        return arena(index);
    }
    statistics::DeviceRecord& add_device(const char* name, std::uint64_t id) {
        const auto index = header().region<statistics::DeviceRecord>().used.fetch_add(1);
        put(device(index).id, id);
        statistics::store_name(device(index).name, name);
        statistics::store_text(device(index).device, "cuda:0");
        return device(index);
    }
    statistics::DeviceStreamRecord& add_device_stream(std::uint64_t device_id) {
        const auto index = header().region<statistics::DeviceStreamRecord>().used.fetch_add(1);
        put(device_stream(index).id, 1000 + index);
        put(device_stream(index).device, device_id);
        return device_stream(index);
    }

    statistics::PlannedRecord& add_planned(const char* name, std::uint64_t id) {
        const auto index = header().region<statistics::PlannedRecord>().used.fetch_add(1);
        put(planned(index).id, id);
        statistics::store_name(planned(index).name, name);
        return planned(index);
    }
    statistics::BudgetRecord& add_budget(const char* name, std::uint64_t id, std::uint64_t parent) {
        const auto index = header().region<statistics::BudgetRecord>().used.fetch_add(1);
        put(budget(index).id, id);
        put(budget(index).parent, parent);
        statistics::store_name(budget(index).name, name);
        return budget(index);
    }

    statistics::StashRecord& add_stash(const char* name, std::uint64_t id, std::uint64_t budget) {
        const auto index = header().region<statistics::StashRecord>().used.fetch_add(1);
        put(stash(index).id, id);
        put(stash(index).budget, budget);
        statistics::store_name(stash(index).name, name);
        return stash(index);
    }

    statistics::SiteRecord& add_site(std::uint64_t allocated_bytes) {
        const auto index = header().region<statistics::SiteRecord>().used.fetch_add(1);
        put(site(index).id, 2000 + index);
        put(site(index).samples, 1);
        put(site(index).allocated_bytes, allocated_bytes);
        put(site(index).frame_count, 1);
        return site(index);
    }
    void add_frame_name(const char* name) {
        const auto index = header().region<statistics::FrameNameRecord>().used.fetch_add(1);
        statistics::store_text(frame_name(index).words, name);
    }

    /// Opens it for reading, as a reader does.
    platform::ObservedFile open() const {
        const std::string path = "/proc/self/fd/" + std::to_string(file_);
        return platform::ObservedFile(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    }
    void cut_to(std::size_t bytes) {
        if (ftruncate(file_, static_cast<off_t>(bytes)) != 0) throw std::runtime_error("ftruncate");
    }
    void* base() { return base_; }

private:
    template <class Record>
    Record& at(std::size_t index) {
        // Where the kinds were described: the header may be overwritten, or cut off.
        const auto found = std::ranges::find(offsets_, &Record::layout, &Place::first);
        const std::size_t offset =
            found != offsets_.end() ? found->second : statistics::offset_of<Record>;
        return reinterpret_cast<Record*>(static_cast<std::byte*>(base_) + offset)[index];
    }

    void describe() {
        using namespace statistics;
        describe_layout(header());
        for (const RecordKind* const kind :
             {&ScopeRecord::layout, &ArenaRecord::layout, &DeviceRecord::layout,
              &DeviceStreamRecord::layout, &PlannedRecord::layout, &BudgetRecord::layout,
              &StashRecord::layout}) {
            describe_kind(header(), *kind);
            Region& region = header().regions[header().kinds - 1];
            put(region.used, 1);
            offsets_.emplace_back(kind, region.offset.load());
        }
        put(header().process, static_cast<std::uint64_t>(getpid()));
        store_name(header().process_name, "fake");
        store_name(header().library_version, "1.2.3");
        store_name(pool(0).name, "other");
        store_name(arena(0).name, "other");
        store_name(device(0).name, "other");
        store_name(planned(0).name, "other");
        store_name(scope(0).name, "other");
        put(header().magic, segment_magic);
    }

    using Place = std::pair<const statistics::RecordKind*, std::size_t>;

    std::vector<Place> offsets_;
    int file_;
    void* base_ = nullptr;
};

}  // namespace tensorpool::testing
