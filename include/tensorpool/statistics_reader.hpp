#pragma once

/// @file
/// Readers of the statistics of other processes, which keep running undisturbed. Linux only: on
/// other systems no process can be read.

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <tensorpool/export.hpp>
#include <tensorpool/heap_profile.hpp>
#include <tensorpool/process_snapshot.hpp>
#include <tensorpool/timeline.hpp>

namespace tensorpool {

/// Why a process cannot be read.
enum class AttachFailure : std::uint8_t {
    /// There is no process with this number.
    no_process,
    /// It holds no pool, or its statistics are private (TENSORPOOL_STATISTICS=off).
    no_segment,
    /// It closed the descriptor of its segment.
    closed,
    /// It belongs to another user.
    other_user,
    /// It forbids access (prctl PR_SET_DUMPABLE), as set-uid programs do.
    not_dumpable,
    /// It has capabilities, or a name space, that the reader lacks.
    more_privileged,
    /// Its version of tensorpool has another segment layout.
    other_version,
    /// The segment is truncated or overwritten, or is none.
    damaged,
    /// It ended while it was read.
    ended,
    /// The system refused for another reason.
    system,
};

/// The exception for a process that cannot be read.
class TENSORPOOL_API AttachError : public std::runtime_error {
public:
    /// Makes the error. `what` states what was found and what helps.
    AttachError(AttachFailure failure, const std::string& what);
    ~AttachError() override;
    /// Returns why the process cannot be read.
    AttachFailure failure() const noexcept { return failure_; }

private:
    AttachFailure failure_;
};

/// A process that holds a pool, or may hold one.
struct ObservedProcess {
    /// The process's number.
    std::uint64_t process = 0;
    /// The process's name, as the system has it.
    std::string name;
    /// Whether it can be read.
    bool readable = false;
    /// Why it cannot be read; "" if it can.
    std::string problem;
};

/// Reads the statistics of one process.
///
/// The process is never stopped or slowed and does not notice its readers. One thread at a time may
/// use a reader. A reader holds one descriptor and one mapping.
class TENSORPOOL_API StatisticsReader {
public:
    /// Returns the processes whose segments are visible, in the order of their numbers.
    ///
    /// These are the processes of this user (for root, of all users), found in /proc, and those
    /// with a file in TENSORPOOL_STATISTICS_DIR, if that is set. Processes whose segment cannot be
    /// read are included. Any thread may call it. Throws std::bad_alloc.
    static std::vector<ObservedProcess> list();
    /// Removes the files of ended processes from TENSORPOOL_STATISTICS_DIR and returns how many it
    /// removed. Does nothing if the variable is not set. Any thread may call it. Throws
    /// std::bad_alloc.
    static unsigned remove_dead();

    /// Returns a reader of the process with this number. A process may have any number of readers.
    /// Any thread may call it. Throws AttachError if the process cannot be read, and
    /// std::bad_alloc.
    static StatisticsReader attach(std::uint64_t process);
    /// Returns a reader that owns `segment`, a descriptor of its segment that a process handed to
    /// its observer. The descriptor is closed on an error too.
    ///
    /// The statistics can also be read after the end of the process; they are then its last ones.
    /// Throws AttachError, and std::bad_alloc.
    static StatisticsReader take_over(int segment);

    /// Takes over the process of another object, which then may only be assigned to or destroyed.
    StatisticsReader(StatisticsReader&&) noexcept;
    /// Gives up its own and takes over the process of another object, which then may only be
    /// assigned to or destroyed.
    StatisticsReader& operator=(StatisticsReader&&) noexcept;
    /// Closes the descriptor and the mapping.
    ~StatisticsReader();

    /// Returns the number of the process.
    std::uint64_t process() const noexcept;
    /// Returns whether the process still runs. A segment that is held open can be read after its
    /// end.
    bool is_running() const noexcept;
    /// Returns the present statistics of the process. Throws AttachError if the process has ended,
    /// unless its segment was taken over, and std::bad_alloc.
    ProcessSnapshot snapshot();
    /// Returns the present heap profile of the process. Throws like `snapshot`.
    HeapProfile heap_profile();
    /// Returns the entries of the process's timeline after entry `number`, as far as it still has
    /// them; 0 means all. This also works after its end. Throws AttachError if the segment is
    /// damaged, and std::bad_alloc.
    TimelinePart entries_since(std::uint64_t number = 0);

private:
    struct State;
    explicit StatisticsReader(std::unique_ptr<State> state) noexcept;
    bool is_gone() const;
    std::unique_ptr<State> state_;
};

}  // namespace tensorpool
