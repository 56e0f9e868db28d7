#pragma once

/// @file
/// The figures of other processes, read while they run. Linux only: elsewhere there are none.

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <tensorpool/export.hpp>
#include <tensorpool/process_snapshot.hpp>
#include <tensorpool/timeline.hpp>

namespace tensorpool {

/// Why a process cannot be read.
enum class AttachFailure : std::uint8_t {
    no_process,    ///< there is none of this number
    no_segment,    ///< it holds no pool, or its figures are private (TENSORPOOL_STATISTICS=off)
    closed,        ///< it closed the descriptor of its segment
    other_user,    ///< it is another user's
    not_dumpable,  ///< it forbids to be looked at (prctl PR_SET_DUMPABLE), as set-uid programs do
    more_privileged,  ///< it has capabilities, or a name space, that the reader lacks
    other_version,    ///< its tensorpool lays out its segment in another way
    damaged,          ///< what is there is no segment, or one cut short or overwritten
    ended,            ///< it ended while it was read
    system,           ///< the system refused for a reason of its own
};

class TENSORPOOL_API AttachError : public std::runtime_error {
public:
    /// `what` says what was found and what helps.
    AttachError(AttachFailure failure, const std::string& what);
    ~AttachError() override;
    AttachFailure failure() const noexcept { return failure_; }

private:
    AttachFailure failure_;
};

/// A process that holds a pool, or that might.
struct ObservedProcess {
    std::uint64_t process = 0;
    std::string name;
    bool readable = false;
    std::string problem;  ///< why it cannot be read; "" when it can
};

/// Reads one process. It is never stopped or slowed, and never learns of its readers. A reader is
/// one thread's at a time; it holds one descriptor and one mapping.
class TENSORPOOL_API StatisticsReader {
public:
    /// The processes whose segments can be seen, in the order of their numbers: those of this user
    /// (root: all), through /proc, and those with a file in TENSORPOOL_STATISTICS_DIR, where that
    /// is set. Processes that hold a segment which cannot be read are among them. Any thread.
    /// Throws std::bad_alloc.
    static std::vector<ObservedProcess> list();
    /// Removes from TENSORPOOL_STATISTICS_DIR the files of processes that have ended; returns how
    /// many. Does nothing where it is not set. Any thread. Throws std::bad_alloc.
    static unsigned remove_dead();

    /// Any thread; any number of readers of one process. Throws AttachError, and std::bad_alloc.
    static StatisticsReader attach(std::uint64_t process);
    /// Takes over a descriptor of its segment that a process handed to its observer, which is
    /// closed where this throws too. The figures can be read after the end of the process as well:
    /// they are then those that it ended with. Throws AttachError, and std::bad_alloc.
    static StatisticsReader take_over(int segment);

    StatisticsReader(StatisticsReader&&) noexcept;
    StatisticsReader& operator=(StatisticsReader&&) noexcept;
    ~StatisticsReader();

    std::uint64_t process() const noexcept;
    /// Whether the process still runs; a segment that is held open can be read after its end.
    bool is_running() const noexcept;
    /// Throws AttachError when the process has ended, unless its segment was taken over, and
    /// std::bad_alloc.
    ProcessSnapshot snapshot();
    /// What the process keeps of its timeline after entry `number`; 0 for all. Also after its end.
    /// Throws AttachError where the segment is damaged, and std::bad_alloc.
    TimelinePart entries_since(std::uint64_t number = 0);

private:
    struct State;
    explicit StatisticsReader(std::unique_ptr<State> state) noexcept;
    std::unique_ptr<State> state_;
};

}  // namespace tensorpool
