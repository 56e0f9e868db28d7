// Writes PyTorch's memory snapshot. The entries that its viewers require were taken from
// torch/cuda/_memory_viz.py and torch/utils/viz/MemoryViz.js.

#include "export/formats.hpp"
#include "formats/symbols/frame_names.hpp"

namespace tensorpool::command::export_ {
namespace {

struct SegmentBlock {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    std::uint64_t requested_bytes = 0;  ///< at most `bytes`; 0 for free blocks
    std::uint32_t stack = 0;
    bool is_alive = false;
    bool is_deferred = false;  ///< alive, but already freed by its owner
};

/// A range of addresses from which one pool, arena or scratch took blocks. Its blocks tile it: each
/// begins where the previous one ends.
struct Segment {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    std::uint32_t source = 0;
    std::uint16_t stream = 0;  ///< of its first block
    std::vector<SegmentBlock> blocks;
};

using trace::Range;
using trace::RangeSet;

constexpr std::uint64_t growth_bytes = std::uint64_t{4} << 20;

/// The ranges used by each source. There are few sources.
std::map<std::uint32_t, RangeSet> used_by(const History& history,
                                          std::span<const std::uint32_t> lifetimes, Moment moment,
                                          const Slabs& slabs) {
    std::map<std::uint32_t, RangeSet> used;
    for (const std::uint32_t i : lifetimes) {
        const Lifetime& lifetime = history.lifetimes()[i];
        if (!moment.has_begun(lifetime) || slabs.has_known(lifetime.address)) continue;
        used[lifetime.source].add(history.range(i));
    }
    return used;
}

struct Piece {
    Range range;
    std::uint32_t source;
    bool is_slab = false;
};

std::vector<Piece> pieces_of(const std::map<std::uint32_t, RangeSet>& used,
                             const std::vector<Range>& slabs, std::uint32_t of_slabs) {
    std::vector<Piece> pieces;
    for (const auto& [source, ranges] : used) {
        for (const Range range : ranges.all()) pieces.push_back({range, source, false});
    }
    for (const Range range : slabs) pieces.push_back({range, of_slabs, true});
    std::ranges::stable_sort(pieces, {}, [](const Piece& piece) { return piece.range.begin; });
    return pieces;
}

std::vector<Segment> join(const std::vector<Piece>& pieces) {
    std::vector<Segment> segments;
    bool last_is_slab = false;
    for (Piece piece : pieces) {
        Segment* const last = segments.empty() ? nullptr : &segments.back();
        const std::uint64_t taken = last == nullptr ? 0 : last->address + last->bytes;
        piece.range.begin = std::max(piece.range.begin, taken);
        if (piece.range.begin >= piece.range.end) continue;
        if (last != nullptr && last->source == piece.source && !last_is_slab && !piece.is_slab &&
            piece.range.begin - taken < growth_bytes) {
            last->bytes = piece.range.end - last->address;
        } else {
            segments.push_back({piece.range.begin, piece.range.bytes(), piece.source, 0, {}});
            last_is_slab = piece.is_slab;
        }
    }
    return segments;
}

/// Fills one segment after the other with blocks in order of address.
class Filling {
public:
    explicit Filling(std::vector<Segment>& segments) : segments_(segments) {}

    void add(Range range, std::uint64_t requested_bytes, std::uint32_t stack,
             std::uint16_t stream = 0, bool is_deferred = false) {
        while (now_ < segments_.size() && end_of(now_) <= range.begin) end_segment();
        if (now_ == segments_.size()) return;
        const std::uint64_t begin = std::max(range.begin, filled());
        const std::uint64_t end = std::min(range.end, end_of(now_));
        if (begin >= end) return;
        leave_free_up_to(begin);
        if (!std::exchange(has_stream_, true)) segments_[now_].stream = stream;
        segments_[now_].blocks.push_back(
            {begin, end - begin, std::min(requested_bytes, end - begin), stack, true, is_deferred});
    }
    void finish() {
        while (now_ < segments_.size()) end_segment();
    }

private:
    std::uint64_t end_of(std::size_t segment) const {
        return segments_[segment].address + segments_[segment].bytes;
    }
    std::uint64_t filled() const {
        const Segment& segment = segments_[now_];
        if (segment.blocks.empty()) return segment.address;
        return segment.blocks.back().address + segment.blocks.back().bytes;
    }
    void leave_free_up_to(std::uint64_t address) {
        const std::uint64_t begin = filled();
        if (begin < address)
            segments_[now_].blocks.push_back({begin, address - begin, 0, 0, false, false});
    }
    void end_segment() {
        leave_free_up_to(end_of(now_));
        has_stream_ = false;
        ++now_;
    }

    std::vector<Segment>& segments_;
    std::size_t now_ = 0;
    bool has_stream_ = false;  // whether the segment has the stream of its first block
};

/// Returns the segments of one process, or of one device's allocator, in order of address. `lives`
/// are the indices of its blocks. For a device's allocator, `source`, the segments are its slabs,
/// which `slabs` holds as of the moment. The trace does not record what a pool reserves. The
/// segments of a pool, and those that a device's allocator made before the recording, are therefore
/// the addresses that any block has had so far. Gaps of less than 4 MiB, the growth step of pools,
/// are included. Blocks that overlap, which happens if entries were dropped, are cut.
std::vector<Segment> segments_of(const History& history, std::span<const std::uint32_t> lifetimes,
                                 Moment moment, const Slabs& slabs, std::uint32_t source) {
    std::vector<Segment> segments =
        join(pieces_of(used_by(history, lifetimes, moment, slabs), slabs.all(), source));
    std::vector<std::size_t> alive;
    for (const std::uint32_t i : lifetimes) {
        if (moment.is_alive(history.lifetimes()[i])) alive.push_back(i);
    }
    std::ranges::stable_sort(alive, {},
                             [&](std::size_t i) { return history.lifetimes()[i].address; });
    Filling filling(segments);
    for (const std::size_t i : alive) {
        const Lifetime& lifetime = history.lifetimes()[i];
        filling.add(history.range(i), lifetime.bytes, history.facts(i).stack, lifetime.stream,
                    moment.is_deferred(lifetime));
    }
    filling.finish();
    return segments;
}

class SnapshotWriter {
public:
    SnapshotWriter(const History& history, Moment moment, WrittenFile& file)
        : history_(history),
          moment_(moment),
          names_(history.recording()),
          pickle_(file),
          parts_(processes()) {
        find_devices();
        part_lifetimes();
        follow_slabs();
        for (std::size_t i = processes(); i < parts_.size(); ++i) order_steps(parts_[i]);
    }

    std::uint64_t write(std::uint64_t max_entries) {
        pickle_.begin_dictionary();
        write_segments();
        const std::uint64_t left_out = write_traces(max_entries);
        pickle_.text("allocator_settings");
        pickle_.begin_dictionary();
        pickle_.end_dictionary();
        pickle_.text("external_annotations");
        pickle_.begin_list();
        pickle_.end_list();
        pickle_.end_dictionary();
        pickle_.finish();
        return left_out;
    }

private:
    /// An event of a block or of a slab.
    struct Step {
        enum class Kind : std::uint8_t { begin, defer, end, slab };
        Kind kind;
        std::uint32_t number;  // index of a lifetime, or in Part::changes
    };
    struct SlabChange {
        std::uint32_t call;
        trace::Range range;
        bool begins;
    };
    /// A device in PyTorch's sense: a process, or an allocator of device memory.
    struct Part {
        std::vector<std::uint32_t> lifetimes;
        std::vector<Step> steps;  // up to the moment, in order of time
        Slabs slabs;
        std::vector<SlabChange> changes;
        std::uint32_t source = 0;  // 0: a process
    };

    std::uint32_t processes() const {
        return static_cast<std::uint32_t>(history_.recording().processes.size());
    }

    void find_devices() {
        const auto& sources = history_.recording().sources;
        for (std::uint32_t source = 0; source < sources.size(); ++source) {
            part_of_source_.push_back(sources[source].process);
            if (sources[source].kind != TraceSource::device) continue;
            part_of_source_.back() = static_cast<std::uint32_t>(parts_.size());
            parts_.emplace_back().source = source;
        }
    }
    /// Calls without a source belong to their process.
    Part& part_of(const Lifetime& lifetime) {
        return parts_[lifetime.source == 0 ? lifetime.process : part_of_source_[lifetime.source]];
    }

    /// Distributes all lifetimes in one pass, because there may be thousands of processes.
    void part_lifetimes() {
        const std::vector<Lifetime>& lifetimes = history_.lifetimes();
        for (std::uint32_t i = 0; i < lifetimes.size(); ++i)
            part_of(lifetimes[i]).lifetimes.push_back(i);
        history_.walk(
            [&](std::uint32_t i) {
                const bool is_included =
                    lifetimes[i].begin != Lifetime::none && moment_.has_begun(lifetimes[i]);
                if (is_included) part_of(lifetimes[i]).steps.push_back({Step::Kind::begin, i});
                if (is_included && moment_.is_deferred(lifetimes[i])) {
                    part_of(lifetimes[i]).steps.push_back({Step::Kind::defer, i});
                }
            },
            [&](std::uint32_t i) {
                if (moment_.has_ended(lifetimes[i])) {
                    part_of(lifetimes[i]).steps.push_back({Step::Kind::end, i});
                }
            });
    }

    void follow_slabs() {
        const auto& calls = history_.recording().calls;
        for (std::uint32_t i = 0; i < moment_.calls; ++i) {
            Part& part = parts_[part_of_source_[calls[i].source]];
            if (part.source != 0) follow_slabs(part, i, calls[i]);
        }
    }
    void follow_slabs(Part& part, std::uint32_t i, const trace::Call& call) {
        const trace::Range range = trace::range_of(call.address, call.bytes);
        if (call.action == TraceAction::slab) {
            part.slabs.add(range);
            add_change(part, {i, range, true});
        } else if (call.action == TraceAction::slab_end) {
            part.slabs.remove(range);
            add_change(part, {i, range, false});
        } else if (call.action == TraceAction::gone) {
            for (const trace::Range all : part.slabs.all()) {
                part.slabs.remove(all);
                add_change(part, {i, all, false});
            }
        }
    }
    static void add_change(Part& part, SlabChange change) {
        part.steps.push_back({Step::Kind::slab, static_cast<std::uint32_t>(part.changes.size())});
        part.changes.push_back(change);
    }

    std::uint32_t call_of(Step step, const Part& part) const {
        if (step.kind == Step::Kind::slab) return part.changes[step.number].call;
        const Lifetime& lifetime = history_.lifetimes()[step.number];
        if (step.kind == Step::Kind::begin) return lifetime.begin;
        return step.kind == Step::Kind::defer ? lifetime.deferred : lifetime.end;
    }
    void order_steps(Part& part) const {
        std::ranges::stable_sort(part.steps, {}, [&](Step step) { return call_of(step, part); });
    }

    void write_segments() {
        pickle_.text("segments");
        pickle_.begin_list();
        for (std::uint32_t device = 0; device < parts_.size(); ++device) {
            const Part& part = parts_[device];
            for (const Segment& segment :
                 segments_of(history_, part.lifetimes, moment_, part.slabs, part.source)) {
                write_segment(segment, device);
                pickle_.end_item();
            }
        }
        pickle_.end_list();
    }
    void write_segment(const Segment& segment, std::uint32_t device) {
        std::uint64_t active = 0;
        std::uint64_t allocated = 0;
        std::uint64_t requested = 0;
        for (const SegmentBlock& block : segment.blocks) {
            active += block.is_alive ? block.bytes : 0;
            if (!block.is_alive || block.is_deferred) continue;
            allocated += block.bytes;
            requested += block.requested_bytes;
        }
        const trace::RecordedSource& source = history_.recording().sources[segment.source];
        pickle_.begin_dictionary();
        pickle_.entry("device", device);
        pickle_.entry("address", segment.address);
        pickle_.entry("total_size", segment.bytes);
        pickle_.entry("stream", history_.recording().streams[segment.stream]);
        pickle_.entry("segment_type", "large");
        pickle_.text("segment_pool_id");
        pickle_.number(static_cast<std::uint64_t>(source.kind));
        pickle_.number(source.number);
        pickle_.make_pair();
        pickle_.text("is_expandable");
        pickle_.boolean(parts_[device].slabs.have_grown());
        pickle_.entry("allocated_size", allocated);
        pickle_.entry("active_size", active);
        pickle_.entry("requested_size", requested);
        pickle_.entry("tensorpool_source", source.name);
        write_frames(0);
        write_blocks(segment);
        pickle_.end_dictionary();
    }
    void write_blocks(const Segment& segment) {
        pickle_.text("blocks");
        pickle_.begin_list();
        for (const SegmentBlock& block : segment.blocks) {
            pickle_.begin_dictionary();
            pickle_.entry("address", block.address);
            pickle_.entry("size", block.bytes);
            pickle_.entry("requested_size", block.requested_bytes);
            pickle_.entry("state", state_of(block));
            write_frames(block.stack);
            pickle_.end_dictionary();
            pickle_.end_item();
        }
        pickle_.end_list();
    }

    static const char* state_of(const SegmentBlock& block) {
        if (!block.is_alive) return "inactive";
        return block.is_deferred ? "active_pending_free" : "active_allocated";
    }

    // A list of frames is written once, then referenced.
    void write_frames(std::uint32_t stack) {
        pickle_.text("frames");
        const auto [at, is_new] = stacks_.try_emplace(stack, 0);
        if (!is_new) return pickle_.again(at->second);
        pickle_.begin_list();
        for (const trace::RecordedFrame frame :
             symbols::frames_of_caller(history_.recording(), stack)) {
            write_frame(names_.name(frame));
            pickle_.end_item();
        }
        pickle_.end_list();
        at->second = pickle_.remember();
    }
    void write_frame(const symbols::FrameName& frame) {
        const symbols::CodeLocation& location = frame.location;
        pickle_.begin_dictionary();
        pickle_.entry("filename", location.file.empty() ? frame.module : location.file);
        pickle_.entry("line", static_cast<std::uint64_t>(std::max(location.line, 0)));
        pickle_.entry("name",
                      location.function.empty() ? symbols::to_text(frame) : location.function);
        pickle_.end_dictionary();
    }

    std::uint64_t write_traces(std::uint64_t max_entries) {
        std::uint64_t left_out = 0;
        pickle_.text("device_traces");
        pickle_.begin_list();
        for (const Part& part : parts_) {
            left_out += write_trace(part, max_entries);
            pickle_.end_item();
        }
        pickle_.end_list();
        return left_out;
    }
    /// The viewer works backward from the blocks at the moment, so the history ends there.
    std::uint64_t write_trace(const Part& part, std::uint64_t max_entries) {
        const std::span<const Step> steps = part.steps;
        const std::size_t left_out = steps.size() > max_entries ? steps.size() - max_entries : 0;
        pickle_.begin_list();
        for (const Step step : steps.subspan(left_out)) write_step(step, part);
        pickle_.end_list();
        return left_out;
    }
    void write_step(Step step, const Part& part) {
        if (step.kind == Step::Kind::slab) return write_slab(part.changes[step.number], part);
        const Lifetime& lifetime = history_.lifetimes()[step.number];
        const auto write = [&](const char* action) {
            write_event(action, lifetime.address, lifetime.bytes, lifetime.stream,
                        call_of(step, part), history_.facts(step.number).stack);
        };
        if (step.kind == Step::Kind::begin) return write("alloc");
        if (step.kind == Step::Kind::defer) return write("free_requested");
        if (lifetime.deferred == Lifetime::none) write("free_requested");
        write("free_completed");
    }
    void write_slab(const SlabChange& change, const Part& part) {
        const bool grow = part.slabs.have_grown();
        const char* const made = grow ? "segment_map" : "segment_alloc";
        const char* const gone = grow ? "segment_unmap" : "segment_free";
        write_event(change.begins ? made : gone, change.range.begin, change.range.bytes(), 0,
                    change.call, history_.recording().calls[change.call].stack);
    }
    void write_event(std::string_view action, std::uint64_t address, std::uint64_t bytes,
                     std::uint16_t stream, std::uint32_t call, std::uint32_t stack) {
        const std::uint64_t time = history_.recording().begun_unix_ns + history_.time_of(call);
        pickle_.begin_dictionary();
        pickle_.entry("action", action);
        pickle_.entry("addr", address);
        pickle_.entry("size", bytes);
        pickle_.entry("stream", history_.recording().streams[stream]);
        pickle_.entry("time_us", time / 1000);
        write_frames(stack);
        pickle_.end_dictionary();
        pickle_.end_item();
    }

    const History& history_;
    Moment moment_;
    symbols::FrameNames names_;
    PickleWriter pickle_;
    std::vector<Part> parts_;  // the processes, then the allocators of device memory
    std::vector<std::uint32_t> part_of_source_;
    std::map<std::uint32_t, std::uint32_t> stacks_;  // numbers of the lists in the pickle
};

}  // namespace

std::uint64_t write_snapshot(const History& history, Moment moment, std::uint64_t max_entries,
                             WrittenFile& file) {
    return SnapshotWriter(history, moment, file).write(max_entries);
}

}  // namespace tensorpool::command::export_
