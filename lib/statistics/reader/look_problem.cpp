#include "statistics/reader/look_problem.hpp"

namespace tensorpool::statistics {

using platform::Look;

SegmentProblem problem_of(Look look) {
    switch (look) {
        case Look::allowed:
            return {AttachFailure::no_segment,
                    "it has no figures to show: it holds no pool, was built with an older "
                    "tensorpool, or runs with TENSORPOOL_STATISTICS=off"};
        case Look::no_process:
            return {AttachFailure::no_process,
                    "there is no such process; see which there are with `tensorpool ls`"};
        case Look::other_user:
            return {AttachFailure::other_user,
                    "it is another user's; read it as that user or as root, or let both use one "
                    "folder by TENSORPOOL_STATISTICS_DIR and read it as root"};
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
                    "it is in a user name space, as of a container, that this reader may not look "
                    "into; read it from inside of it, as root outside, or start it with "
                    "TENSORPOOL_STATISTICS_DIR set to a folder that both see"};
        case Look::not_dumpable:
            return {AttachFailure::not_dumpable,
                    "it forbids to be looked at, as set-uid programs do (prctl PR_SET_DUMPABLE); "
                    "read it as root, or start it with TENSORPOOL_STATISTICS_DIR"};
        case Look::refused:
            break;
    }
    return {AttachFailure::system,
            "the system forbids to look into it, by a rule of its own (as of SELinux, AppArmor or "
            "seccomp); read it as root, or start it with TENSORPOOL_STATISTICS_DIR"};
}

SegmentProblem closed_problem() {
    return {AttachFailure::closed,
            "it closed the descriptor of its segment, as programs do that close all they do not "
            "know; start it with TENSORPOOL_STATISTICS_DIR, or keep it from closing descriptors of "
            "memfd:tensorpool"};
}

SegmentProblem ended_problem() {
    return {AttachFailure::ended, "it has ended"};
}

SegmentProblem other_program_problem() {
    return {AttachFailure::ended, "it runs another program now; attach to it again"};
}

}  // namespace tensorpool::statistics
