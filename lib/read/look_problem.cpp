#include "read/look_problem.hpp"

namespace tensorpool::read {

using platform::Look;

SegmentProblem problem_of(Look look) {
    switch (look) {
        case Look::allowed:
            return {AttachFailure::no_segment,
                    "it has no statistics to show: it holds no pool, was built with an older "
                    "tensorpool, or runs with TENSORPOOL_STATISTICS=off"};
        case Look::no_process:
            return {AttachFailure::no_process,
                    "there is no such process; `tensorpool ls` lists the processes"};
        case Look::other_user:
            return {
                AttachFailure::other_user,
                "it belongs to another user; read it as that user or as root, or set for both one "
                "folder in TENSORPOOL_STATISTICS_DIR and read it as root"};
        case Look::other_group:
            return {AttachFailure::other_user,
                    "it runs with another group than this reader; read it with that group (newgrp) "
                    "or as root, or start it with TENSORPOOL_STATISTICS_DIR"};
        case Look::more_capabilities:
            return {AttachFailure::more_privileged,
                    "it has capabilities that this reader lacks; read it as root, or start it with "
                    "TENSORPOOL_STATISTICS_DIR"};
        case Look::other_name_space:
            return {AttachFailure::more_privileged,
                    "it is in a user name space, such as a container's, that this reader may not "
                    "read; read it from inside, as root outside, or start it with "
                    "TENSORPOOL_STATISTICS_DIR set to a folder visible to both"};
        case Look::not_dumpable:
            return {AttachFailure::not_dumpable,
                    "it does not permit inspection, like set-uid programs (prctl PR_SET_DUMPABLE); "
                    "read it as root, or start it with TENSORPOOL_STATISTICS_DIR"};
        case Look::refused:
            break;
    }
    return {
        AttachFailure::system,
        "the system does not permit reading it, by a rule such as those of SELinux, AppArmor or "
        "seccomp; read it as root, or start it with TENSORPOOL_STATISTICS_DIR"};
}

SegmentProblem closed_problem() {
    return {AttachFailure::closed,
            "it closed the descriptor of its segment, like programs that close all unknown "
            "descriptors; start it with TENSORPOOL_STATISTICS_DIR, or exclude descriptors of "
            "memfd:tensorpool from closing"};
}

SegmentProblem ended_problem() {
    return {AttachFailure::ended, "it has ended"};
}

SegmentProblem other_program_problem() {
    return {AttachFailure::ended, "it runs another program now; attach to it again"};
}

}  // namespace tensorpool::read
