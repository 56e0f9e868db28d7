#pragma once

/// @file
/// Runs a program with parts of tensorpool enabled in it, and follows its processes.

#include <sys/types.h>

#include <filesystem>
#include <list>
#include <optional>

#include "common/totals.hpp"
#include "formats/trace/trace_file.hpp"

namespace tensorpool::command::launch {

/// Returns the file that a command name means, searching PATH as execvp(3) does; "" if there is
/// none.
std::string find_program(const std::string& word);

/// Returns why the loader cannot preload our library into this program, as far as its file shows:
/// it is statically linked, runs with elevated privileges, or is for another processor type. For a
/// script, checks its interpreter. Returns "" if no obstacle was found.
std::string problem_of_preloading(const std::string& path);

/// The paths of the files that enable the parts. Files may be missing.
struct PartPaths {
    std::filesystem::path interposer;   ///< libtensorpool_interpose.so
    std::filesystem::path torch;        ///< libtensorpool_torch.so
    std::filesystem::path package;      ///< the folder of the Python package
    std::filesystem::path site_folder;  ///< contains our sitecustomize.py
};

/// Finds the files relative to this command: in an installed tree, which may have been moved, or in
/// the build folder that built it.
PartPaths find_part_paths();
PartPaths part_paths_beside(const std::filesystem::path& folder);

enum class Part { malloc, numpy, torch, holders, profile };
inline constexpr Part all_parts[] = {Part::malloc, Part::numpy, Part::torch, Part::holders,
                                     Part::profile};

/// The name in --with and in the notes of processes: "malloc".
std::string_view name_of(Part part) noexcept;
/// The name for people: "PyTorch".
std::string_view title_of(Part part) noexcept;

struct PlannedPart {
    Part part;
    std::string problem;  ///< why it cannot be enabled; "": it is enabled
    bool is_put() const noexcept { return problem.empty(); }
};

/// Selects the parts: those that `with` names, or none for "none". If it names none of malloc,
/// numpy and torch, all of these are selected; holders and profile are only if they are named.
/// Throws CommandError if a named part cannot be enabled or does not exist. `program` is the file
/// that will run; "": unknown.
std::vector<PlannedPart> plan_parts(const std::vector<std::string>& with, const PartPaths& paths,
                                    const std::string& program);

bool is_put(const std::vector<PlannedPart>& parts, Part part) noexcept;

/// What a process of the program sent: descriptors of its shared memory, or a note.
struct Message {
    pid_t process = 0;
    std::vector<Descriptor> files;
    std::string note;
};

/// Receives messages from the processes of the program, on a socket in the abstract name space
/// (unix(7)) with a random name. Accepts only processes of the same user, and one message from each
/// connection.
class Observer {
public:
    /// Throws CommandError.
    Observer();
    Observer(const Observer&) = delete;
    Observer& operator=(const Observer&) = delete;

    /// The value of TENSORPOOL_OBSERVER.
    const std::string& name() const noexcept { return name_; }
    /// Becomes readable when there may be a message.
    int descriptor() const noexcept { return events_.number(); }
    /// Takes the messages that have arrived. Never waits.
    void take(const std::function<void(Message)>& use);

private:
    struct Caller {
        Descriptor socket;
        pid_t process;
    };
    bool accept_one();
    void read_callers(const std::function<void(Message)>& use);
    void add(Descriptor socket);

    std::string name_;
    Descriptor listening_;
    Descriptor events_;
    Descriptor spare_;             // closed to make room for a connection to reject
    std::vector<Caller> callers_;  // connected, but without a message so far
};

struct ProcessResult {
    ProcessSnapshot snapshot;
    Totals totals;
    bool has_ended = true;
};

/// The notes of programs about a part. A process that executes another program counts as another
/// program.
struct PartNotes {
    std::uint64_t programs = 0;         ///< programs in which it is enabled
    std::vector<std::string> problems;  ///< failures, each once; at most a few
};

/// The results of all processes, as the report shows them. Its size is bounded, however many
/// processes there were.
class Results {
public:
    void add(ProcessSnapshot snapshot, bool has_ended);
    /// Adds a note: "malloc" if the part is enabled, "numpy\n<reason>" if it failed.
    void add_note(const std::string& note);
    void add_problem(const std::string& what);

    /// The processes with the largest peaks, in that order.
    const std::vector<ProcessResult>& largest() const noexcept { return largest_; }
    /// The number of all processes, and the number and totals of those not in `largest()`.
    std::uint64_t processes() const noexcept { return largest_.size() + others_; }
    std::uint64_t others() const noexcept { return others_; }
    const Totals& totals_of_others() const noexcept { return totals_of_others_; }

    const PartNotes& notes(Part part) const noexcept {
        return notes_[static_cast<std::size_t>(part)];
    }
    const std::vector<std::string>& problems() const noexcept { return problems_; }

private:
    std::vector<ProcessResult> largest_;
    std::uint64_t others_ = 0;
    Totals totals_of_others_;
    std::array<PartNotes, std::size(all_parts)> notes_;
    std::vector<std::string> problems_;
};

/// The file of --trace. `process` is a number among all recorded processes.
class TraceOutput {
public:
    /// Throws CommandError if the file cannot be created.
    explicit TraceOutput(const std::string& path) : path_(path), writer_(path) {}

    /// Reads the entries since the last call, and returns their number. Throws AttachError if the
    /// shared memory is damaged.
    std::size_t look(std::uint64_t process, LiveTrace& trace) {
        return trace.look([&](const TracePart& part) { writer_.add(process, part); });
    }
    /// Reads a process for the last time, because it has ended or its recording has.
    void finish(std::uint64_t process, LiveTrace& trace) {
        look(process, trace);
        writer_.end(process);
        threads_left_out_ += trace.threads_left_out();
    }
    bool is_full() const noexcept { return !writer_.problem().empty(); }
    void flush() { writer_.flush(); }

    const trace::TraceWriter& writer() const noexcept { return writer_; }
    const std::string& path() const noexcept { return path_; }
    std::uint64_t threads_left_out() const noexcept { return threads_left_out_; }

private:
    std::string path_;
    trace::TraceWriter writer_;
    std::uint64_t threads_left_out_ = 0;
};

/// The processes of the program that used a pool. Each running process takes four descriptors and
/// two mappings. Of an ended process, only the values that the report may show are kept.
class Family {
public:
    /// Reads a member. May throw AttachError.
    using Look = std::function<void(StatisticsReader&)>;
    /// Callbacks that read the members. A reader's address identifies its member.
    struct Looks {
        Look last;  ///< if set, called for each member when it has ended, or at the end
        Look live;  ///< if set, called for each member again and again
        /// The longest time between two calls of `live`, if no other program needs the processor.
        int longest_pause_ms = 8;
    };

    /// `recorder` receives the recordings and must outlive this object; nullptr: none. Throws
    /// CommandError.
    Family(TraceOutput* recorder, Looks looks);
    explicit Family(TraceOutput* recorder) : Family(recorder, Looks{}) {}
    Family(const Family&) = delete;
    Family& operator=(const Family&) = delete;

    /// Becomes readable when a member has ended.
    int descriptor() const noexcept { return events_.number(); }
    void take(Message message);
    void take_ended();
    /// Reads the recorded entries. Returns the largest number of entries that one process had.
    std::size_t take_entries();
    void look();
    int longest_pause_ms() const noexcept { return looks_.longest_pause_ms; }
    /// To be called after the program has ended: reads the statistics of the members that still
    /// run.
    void finish();

    const Results& results() const noexcept { return results_; }

private:
    struct Member {
        std::uint64_t number;  // our own number, which is never reused
        pid_t process;
        Descriptor end;  // a pidfd; may be empty
        StatisticsReader reader;
        std::optional<LiveTrace> trace;
    };
    using Members = std::list<Member>;

    /// Returns whether `read` could read a process. Reports it if not.
    template <class Read>
    bool attempt(Read&& read);
    void add(Message message);
    void make_room(pid_t process);
    std::optional<LiveTrace> take_recording(Descriptor control, Descriptor rings);
    Members::iterator let_go(Members::iterator member, bool has_ended);

    TraceOutput* recorder_;
    Looks looks_;
    Descriptor events_;
    std::size_t max_members_;
    std::uint64_t last_number_ = 0;
    Members members_;
    Results results_;
};

struct Arguments {
    std::vector<std::string> program;    ///< the program and its arguments
    std::vector<std::string> with = {};  ///< names of parts, or none
    std::string limit = {};              ///< a size; "": none
    std::string budget = {};             ///< a path; "": none
    std::string stacks = {};             ///< a size; "": no stacks
    std::string interpose_min = {};      ///< a size; "": from the environment, or 64 KiB
    bool is_recorded = false;
};

struct Outcome {
    int code = 0;    ///< its exit code
    int signal = 0;  ///< the signal that ended it; 0: none
    double user_seconds = 0;
    double system_seconds = 0;
    std::uint64_t minor_faults = 0;
    std::uint64_t peak_resident_bytes = 0;  ///< of the process with the largest peak
};

class Launch {
public:
    /// `arguments` must outlive this object. Throws CommandError if the program does not exist, or
    /// if something that the arguments name is unavailable.
    explicit Launch(const Arguments& arguments);

    const std::vector<PlannedPart>& parts() const noexcept { return parts_; }

    using Report = std::function<void(const Outcome&, const Results&)>;
    /// Runs the program. `looks` are called for each of its processes that used a pool. `report` is
    /// called when the program has ended, while signals to this process are still held back.
    /// `recorder` may be nullptr. Throws CommandError if the program cannot be started.
    Outcome run(Family::Looks looks, TraceOutput* recorder = nullptr,
                const Report& report = {}) const;

private:
    const Arguments& arguments_;
    std::string file_;
    PartPaths paths_;
    std::vector<PlannedPart> parts_;
};

/// Returns the program's exit code. If a signal ended the program, the same signal ends this
/// process.
int end_like(const Outcome& outcome);

}  // namespace tensorpool::command::launch
