// PyTorch's memory snapshot. Which entries its viewers want, and what they check, was read from
// torch/cuda/_memory_viz.py and torch/utils/viz/MemoryViz.js.

#include <algorithm>
#include <map>
#include <span>
#include <vector>

#include "export/formats.hpp"
#include "export/pickle_writer.hpp"
#include "export/segments.hpp"
#include "inspect/frame_names.hpp"

namespace tensorpool::command::export_ {
namespace {

class SnapshotWriter {
public:
    SnapshotWriter(const History& history, Moment moment, WrittenFile& file)
        : history_(history),
          moment_(moment),
          names_(history.recording()),
          pickle_(file),
          lives_(processes()),
          steps_(processes()) {
        part_by_process();
    }

    std::uint64_t write(std::uint64_t most_entries) {
        pickle_.begin_dictionary();
        write_segments();
        const std::uint64_t left_out = write_traces(most_entries);
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
    /// The beginning or the end of a block.
    struct Step {
        std::uint32_t life;
        bool begins;
    };

    std::uint32_t processes() const {
        return static_cast<std::uint32_t>(history_.recording().processes.size());
    }

    /// In one go, for there may be thousands of processes.
    void part_by_process() {
        const std::vector<Life>& lives = history_.lives();
        for (std::uint32_t i = 0; i < lives.size(); ++i) lives_[lives[i].process].push_back(i);
        history_.walk(
            [&](std::uint32_t i) {
                const bool is_told = lives[i].begin != Life::none && moment_.has_begun(lives[i]);
                if (is_told) steps_[lives[i].process].push_back({i, true});
            },
            [&](std::uint32_t i) {
                if (moment_.has_ended(lives[i])) steps_[lives[i].process].push_back({i, false});
            });
    }

    void write_segments() {
        pickle_.text("segments");
        pickle_.begin_list();
        for (std::uint32_t process = 0; process < processes(); ++process) {
            for (const Segment& segment : segments_of(history_, lives_[process], moment_)) {
                write_segment(segment, process);
                pickle_.end_item();
            }
        }
        pickle_.end_list();
    }
    void write_segment(const Segment& segment, std::uint32_t process) {
        std::uint64_t allocated = 0;
        std::uint64_t requested = 0;
        for (const SegmentBlock& block : segment.blocks) {
            allocated += block.is_alive ? block.bytes : 0;
            requested += block.requested_bytes;
        }
        const trace::RecordedSource& source = history_.recording().sources[segment.source];
        pickle_.begin_dictionary();
        pickle_.entry("device", process);
        pickle_.entry("address", segment.address);
        pickle_.entry("total_size", segment.bytes);
        pickle_.entry("stream", 0);
        pickle_.entry("segment_type", "large");
        pickle_.text("segment_pool_id");
        pickle_.number(static_cast<std::uint64_t>(source.kind));
        pickle_.number(source.number);
        pickle_.make_pair();
        pickle_.text("is_expandable");
        pickle_.boolean(false);
        pickle_.entry("allocated_size", allocated);
        pickle_.entry("active_size", allocated);
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
            pickle_.entry("state", block.is_alive ? "active_allocated" : "inactive");
            write_frames(block.stack);
            pickle_.end_dictionary();
            pickle_.end_item();
        }
        pickle_.end_list();
    }

    // The same list of frames is written once.
    void write_frames(std::uint32_t stack) {
        pickle_.text("frames");
        const auto [at, is_new] = stacks_.try_emplace(stack, 0);
        if (!is_new) return pickle_.again(at->second);
        pickle_.begin_list();
        for (const trace::RecordedFrame frame :
             inspect::frames_of_caller(history_.recording(), stack)) {
            write_frame(names_.name(frame));
            pickle_.end_item();
        }
        pickle_.end_list();
        at->second = pickle_.remember();
    }
    void write_frame(const inspect::FrameName& frame) {
        const inspect::CodePlace& place = frame.place;
        pickle_.begin_dictionary();
        pickle_.entry("filename", place.file.empty() ? frame.module : place.file);
        pickle_.entry("line", static_cast<std::uint64_t>(std::max(place.line, 0)));
        pickle_.entry("name", place.function.empty() ? inspect::to_text(frame) : place.function);
        pickle_.end_dictionary();
    }

    std::uint64_t write_traces(std::uint64_t most_entries) {
        std::uint64_t left_out = 0;
        pickle_.text("device_traces");
        pickle_.begin_list();
        for (std::uint32_t process = 0; process < processes(); ++process) {
            left_out += write_trace(process, most_entries);
            pickle_.end_item();
        }
        pickle_.end_list();
        return left_out;
    }
    /// The viewer works back from the blocks at the moment, so the history ends there.
    std::uint64_t write_trace(std::uint32_t process, std::uint64_t most_entries) {
        const std::span<const Step> steps = steps_[process];
        const std::size_t left_out = steps.size() > most_entries ? steps.size() - most_entries : 0;
        pickle_.begin_list();
        for (const Step step : steps.subspan(left_out)) write_step(step);
        pickle_.end_list();
        return left_out;
    }
    void write_step(Step step) {
        const Life& life = history_.lives()[step.life];
        if (step.begins) return write_step("alloc", step.life, life.begin);
        write_step("free_requested", step.life, life.end);
        write_step("free_completed", step.life, life.end);
    }
    void write_step(std::string_view action, std::uint32_t life, std::uint32_t call) {
        const std::uint64_t time = history_.recording().begun_unix_ns + history_.time_of(call);
        pickle_.begin_dictionary();
        pickle_.entry("action", action);
        pickle_.entry("addr", history_.lives()[life].address);
        pickle_.entry("size", history_.lives()[life].bytes);
        pickle_.entry("stream", 0);
        pickle_.entry("time_us", time / 1000);
        write_frames(history_.facts(life).stack);
        pickle_.end_dictionary();
        pickle_.end_item();
    }

    const History& history_;
    Moment moment_;
    inspect::FrameNames names_;
    PickleWriter pickle_;
    std::vector<std::vector<std::uint32_t>> lives_;  // of each process
    std::vector<std::vector<Step>> steps_;           // the same: up to the moment, by time
    std::map<std::uint32_t, std::uint32_t> stacks_;  // what the pickle remembers them by
};

}  // namespace

std::uint64_t write_snapshot(const History& history, Moment moment, std::uint64_t most_entries,
                             WrittenFile& file) {
    return SnapshotWriter(history, moment, file).write(most_entries);
}

}  // namespace tensorpool::command::export_
