#pragma once

/// @file
/// The processes of a program that runs with parts of tensorpool, and what they send.

#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/un.h>

#include <list>

#include "common/target.hpp"
#include "formats/trace/trace_file.hpp"

namespace tensorpool::command::launch {

enum class Part { malloc, numpy, torch, holders, profile };
inline constexpr Part all_parts[] = {Part::malloc, Part::numpy, Part::torch, Part::holders,
                                     Part::profile};

/// The name in --with and in the notes of processes: "malloc".
std::string_view name_of(Part part) noexcept;
/// The name for people: "PyTorch".
std::string_view title_of(Part part) noexcept;

/// What a process of the program sent: descriptors of its shared memory, or a note.
struct Message {
    pid_t process = 0;
    std::vector<Descriptor> files;
    std::string note;
};
/// A caller sends its message at once. If there are more callers than this, the oldest silent one
/// is dropped.
inline constexpr std::size_t max_callers = 64;
/// Connections accepted at a time. The limit keeps the program's signals from waiting.
inline constexpr int max_accepted = 256;

inline std::string random_name() {
    unsigned long long random[2] = {};
    if (::getrandom(random, sizeof random, 0) != static_cast<ssize_t>(sizeof random)) {
        throw CommandError(run_failed, "run: the system returned no random numbers");
    }
    return fmt::format("tensorpool-run-{}-{:016x}{:016x}", ::getpid(), random[0], random[1]);
}

inline Descriptor listen_at(const std::string& name) {
    Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    if (!socket ||
        ::bind(socket.number(), reinterpret_cast<const sockaddr*>(&address), bytes) != 0 ||
        ::listen(socket.number(), SOMAXCONN) != 0) {
        throw CommandError(run_failed,
                           fmt::format("run: cannot listen on a socket: {}", std::strerror(errno)));
    }
    return socket;
}

/// Adds a descriptor to those that are watched. `number` comes with its events.
inline void watch(const Descriptor& events, const Descriptor& watched, std::uint64_t number = 0) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = number;
    ::epoll_ctl(events.number(), EPOLL_CTL_ADD, watched.number(), &event);
}

inline Descriptor open_spare() {
    return Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

inline constexpr unsigned max_files = 8;
inline constexpr std::size_t max_note_bytes = 1024;

/// Takes all descriptors of a message, so that unwanted ones are closed.
inline std::vector<Descriptor> files_of(msghdr& message) {
    std::vector<Descriptor> files;
    for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
         part = CMSG_NXTHDR(&message, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
        const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
            int number = -1;
            std::memcpy(&number, CMSG_DATA(part) + i * sizeof(int), sizeof number);
            files.emplace_back(number);
        }
    }
    return files;
}

/// Receives a message; nothing if it has not arrived yet.
inline std::optional<Message> receive(const Descriptor& socket, pid_t process) {
    char text[max_note_bytes];
    iovec part{.iov_base = text, .iov_len = sizeof text};
    alignas(cmsghdr) char control[CMSG_SPACE(max_files * sizeof(int))] = {};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    const ssize_t got = ::recvmsg(socket.number(), &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
    Message message{.process = process, .files = {}, .note = {}};
    if (got <= 0) return message;  // closed without a message
    message.files = files_of(header);
    if (message.files.empty()) message.note.assign(text, static_cast<std::size_t>(got));
    return message;
}

/// Receives messages from the processes of the program, on a socket in the abstract name space
/// (unix(7)) with a random name. Accepts only processes of the same user, and one message from each
/// connection.
class Observer {
public:
    /// Throws CommandError.
    Observer()
        : name_(random_name()),
          listening_(listen_at(name_)),
          events_(::epoll_create1(EPOLL_CLOEXEC)),
          spare_(open_spare()) {
        if (!events_)
            throw CommandError(run_failed, "run: out of file descriptors; raise `ulimit -n`");
        watch(events_, listening_);
    }
    Observer(const Observer&) = delete;
    Observer& operator=(const Observer&) = delete;

    /// The value of TENSORPOOL_OBSERVER.
    const std::string& name() const noexcept { return name_; }
    /// Becomes readable when there may be a message.
    int descriptor() const noexcept { return events_.number(); }
    /// Takes the messages that have arrived. Never waits.
    void take(const std::function<void(Message)>& use) {
        for (int i = 0; i < max_accepted && accept_one(); ++i) read_callers(use);
        read_callers(use);
    }

private:
    struct Caller {
        Descriptor socket;
        pid_t process;
    };
    bool accept_one() {
        Descriptor socket(
            ::accept4(listening_.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (socket) {
            add(std::move(socket));
            return true;
        }
        if (errno != EMFILE && errno != ENFILE) return errno == EINTR || errno == ECONNABORTED;
        // A connection that is not accepted would keep the socket readable forever. The spare
        // descriptor makes room to accept and close it.
        spare_ = Descriptor();
        socket = Descriptor(::accept4(listening_.number(), nullptr, nullptr, SOCK_CLOEXEC));
        socket = Descriptor();
        spare_ = open_spare();
        return true;
    }
    void read_callers(const std::function<void(Message)>& use) {
        std::erase_if(callers_, [&](const Caller& caller) {
            std::optional<Message> message = receive(caller.socket, caller.process);
            if (!message) return false;
            use(std::move(*message));
            return true;
        });
    }
    void add(Descriptor socket) {
        ucred peer{};
        socklen_t bytes = sizeof peer;
        if (::getsockopt(socket.number(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0 ||
            peer.uid != ::geteuid()) {
            return;
        }
        if (callers_.size() == max_callers) callers_.erase(callers_.begin());
        watch(events_, socket);
        callers_.push_back({std::move(socket), peer.pid});
    }

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

namespace fs = std::filesystem;

/// Returns the name of a memory file (memfd_create(2)), which tells the files of one message apart.
/// Their contents are validated by the code that attaches to them.
inline std::string name_of(const Descriptor& file) {
    std::error_code ignored;
    return fs::read_symlink("/proc/self/fd/" + std::to_string(file.number()), ignored);
}

inline constexpr std::size_t max_results = 20;

inline bool is_larger(const ProcessResult& one, const ProcessResult& other) {
    return one.totals.peak_bytes > other.totals.peak_bytes;
}
inline constexpr std::size_t max_problems = 5;

inline void add_once(std::vector<std::string>& texts, const std::string& text) {
    if (texts.size() == max_problems || std::ranges::find(texts, text) != texts.end()) return;
    texts.push_back(text);
}

/// The results of all processes, as the report shows them. Its size is bounded, however many
/// processes there were.
class Results {
public:
    void add(ProcessSnapshot snapshot, bool has_ended) {
        ProcessResult result{std::move(snapshot), {}, has_ended};
        result.totals = add_up(result.snapshot);
        const auto position = std::ranges::upper_bound(largest_, result, is_larger);
        largest_.insert(position, std::move(result));
        if (largest_.size() <= max_results) return;
        const Totals& left = largest_.back().totals;
        ++others_;
        totals_of_others_.peak_bytes += left.peak_bytes;
        totals_of_others_.allocations += left.allocations;
        totals_of_others_.failures += left.failures;
        largest_.pop_back();
    }
    /// Adds a note: "malloc" if the part is enabled, "numpy\n<reason>" if it failed.
    void add_note(const std::string& note) {
        const std::size_t end = note.find('\n');
        const std::string name = note.substr(0, end);
        for (const Part part : all_parts) {
            if (name_of(part) != name) continue;
            PartNotes& notes = notes_[static_cast<std::size_t>(part)];
            if (end == std::string::npos) {
                ++notes.programs;
            } else {
                add_once(notes.problems, printable(note.substr(end + 1)));
            }
        }
    }
    void add_problem(const std::string& what) { add_once(problems_, printable(what)); }

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

inline constexpr std::size_t max_members = 4096;
inline constexpr std::size_t descriptors_of_member = 4;
inline constexpr std::size_t descriptors_of_ours = 128;

/// The number of members for which there are enough descriptors.
inline std::size_t room_for_members() {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    const std::size_t max = limit.rlim_cur;
    const std::size_t left = max > descriptors_of_ours ? max - descriptors_of_ours : 0;
    return std::clamp<std::size_t>(left / descriptors_of_member, 1, max_members);
}

struct Files {
    Descriptor segment;
    Descriptor control;
    Descriptor rings;
};

inline Files sort_out(std::vector<Descriptor> files) {
    Files sorted;
    for (Descriptor& file : files) {
        const std::string name = name_of(file);
        if (name.starts_with("/memfd:tensorpool-control")) {
            sorted.control = std::move(file);
        } else if (name.starts_with("/memfd:tensorpool-rings")) {
            sorted.rings = std::move(file);
        } else {
            sorted.segment = std::move(file);
        }
    }
    return sorted;
}

// Needs Linux 5.3. The C library has no wrapper.
inline Descriptor end_of(pid_t process) {
    return Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
}

inline std::uint64_t number_of(pid_t process) {
    return static_cast<std::uint64_t>(process);
}

/// Stops the recording. Later entries are not read.
inline void end_recording(std::optional<LiveTrace>& trace) {
    trace->stop();
    trace.reset();
}

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
    Family(TraceOutput* recorder, Looks looks)
        : recorder_(recorder),
          looks_(std::move(looks)),
          events_(::epoll_create1(EPOLL_CLOEXEC)),
          max_members_(room_for_members()) {
        if (!events_)
            throw CommandError(run_failed, "run: no descriptor left; look at `ulimit -n`");
    }
    explicit Family(TraceOutput* recorder) : Family(recorder, Looks{}) {}
    Family(const Family&) = delete;
    Family& operator=(const Family&) = delete;

    /// Becomes readable when a member has ended.
    int descriptor() const noexcept { return events_.number(); }
    void take(Message message) {
        if (!message.note.empty()) results_.add_note(message.note);
        if (message.files.empty()) return;
        attempt([&] { add(std::move(message)); });
    }
    void take_ended() {
        std::array<epoll_event, 64> events;
        const int count = ::epoll_wait(events_.number(), events.data(), events.size(), 0);
        for (int i = 0; i < count; ++i) {
            const std::uint64_t number = events[static_cast<std::size_t>(i)].data.u64;
            const auto member = std::ranges::find(members_, number, &Member::number);
            if (member != members_.end()) let_go(member, true);
        }
    }
    /// Reads the recorded entries. Returns the largest number of entries that one process had.
    std::size_t take_entries() {
        std::size_t max = 0;
        for (Member& member : members_) {
            if (!member.trace) continue;
            if (recorder_->is_full()) {
                end_recording(member.trace);
                continue;
            }
            const bool is_readable = attempt([&] {
                max = std::max(max, recorder_->look(number_of(member.process), *member.trace));
            });
            if (!is_readable) member.trace.reset();
        }
        return max;
    }
    void look() {
        for (Member& member : members_) {
            try {
                if (looks_.live) looks_.live(member.reader);
            } catch (const AttachError&) {
                // It cannot be read now. `let_go` reports if it cannot be read at its end either.
            }
        }
    }
    int longest_pause_ms() const noexcept { return looks_.longest_pause_ms; }
    /// To be called after the program has ended: reads the statistics of the members that still
    /// run.
    void finish() {
        take_ended();
        while (!members_.empty()) {
            Member& member = members_.front();
            const bool has_ended = !member.reader.is_running();
            if (!has_ended && member.trace) member.trace->stop();
            let_go(members_.begin(), has_ended);
        }
        if (recorder_ != nullptr) recorder_->flush();
    }

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
    bool attempt(Read&& read) try {
        read();
        return true;
    } catch (const AttachError& error) {
        results_.add_problem(to_command_error(error).what());
        return false;
    }
    void add(Message message) {
        make_room(message.process);
        Files files = sort_out(std::move(message.files));
        // A recording without statistics cannot be attributed to a process.
        if (!files.segment) return;
        StatisticsReader reader = StatisticsReader::take_over(files.segment.release());
        members_.push_back({++last_number_, message.process, end_of(message.process),
                            std::move(reader),
                            take_recording(std::move(files.control), std::move(files.rings))});
        Member& member = members_.back();
        if (member.end) {
            watch(events_, member.end, member.number);
        } else if (!member.reader.is_running()) {
            let_go(std::prev(members_.end()), true);
        }
    }
    // Removes members that have ended. A process that runs another program has handed over new
    // files. If there are too many members, some may have ended without notice.
    void make_room(pid_t process) {
        const bool is_full = members_.size() >= max_members_;
        for (auto member = members_.begin(); member != members_.end();) {
            const bool checked = is_full || member->process == process;
            member =
                checked && !member->reader.is_running() ? let_go(member, true) : std::next(member);
        }
        if (members_.size() >= max_members_) let_go(members_.begin(), false);
    }
    std::optional<LiveTrace> take_recording(Descriptor control, Descriptor rings) {
        if (recorder_ == nullptr || !control || !rings) return std::nullopt;
        std::optional<LiveTrace> taken;
        attempt([&] { taken = LiveTrace::take_over(control.release(), rings.release()); });
        if (taken && recorder_->is_full()) end_recording(taken);
        return taken;
    }
    Members::iterator let_go(Members::iterator member, bool has_ended) {
        if (member->trace)
            attempt([&] { recorder_->finish(number_of(member->process), *member->trace); });
        attempt([&] { results_.add(member->reader.snapshot(), has_ended); });
        if (looks_.last) attempt([&] { looks_.last(member->reader); });
        return members_.erase(member);
    }

    TraceOutput* recorder_;
    Looks looks_;
    Descriptor events_;
    std::size_t max_members_;
    std::uint64_t last_number_ = 0;
    Members members_;
    Results results_;
};

}  // namespace tensorpool::command::launch
