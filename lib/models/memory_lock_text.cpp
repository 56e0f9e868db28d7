#include <tensorpool/memory_lock.hpp>

#include <system_error>

#include "base/text.hpp"
#include "platform/files/page_locks.hpp"

namespace tensorpool {
namespace {

std::string text_of(std::size_t bytes) {
    return bytes == SIZE_MAX ? "unlimited" : base::BytesText(bytes).c_str();
}

std::string process_limit_text(const LockOutcome& outcome) {
    const bool is_hard = outcome.limit == LockLimit::hard;
    return std::string("the limit of locked memory of this process (") +
           platform::lock_limit_name() + ") is " + text_of(outcome.limit_bytes) + ", hard limit " +
           text_of(outcome.hard_limit_bytes) + ", and would have to be " +
           text_of(outcome.needed_bytes) +
           "; to raise it: " + platform::how_to_raise_lock_limit(outcome.needed_bytes, is_hard);
}

std::string machine_text(const LockOutcome& outcome) {
    return "the machine has " + text_of(outcome.available_bytes) + " of its " +
           text_of(outcome.limit_bytes) + " available; end other programs, or lock less";
}

std::string container_text(const LockOutcome& outcome) {
    return "the limit of this container (cgroup) is " + text_of(outcome.limit_bytes) +
           ", which leaves " + text_of(outcome.available_bytes) +
           "; to raise it: --memory= of docker or podman, resources.limits.memory of a pod, or "
           "MemoryMax= of a systemd unit";
}

std::string reason_text(const LockOutcome& outcome) {
    switch (outcome.limit) {
        case LockLimit::none:
            break;
        case LockLimit::soft:
        case LockLimit::hard:
            return process_limit_text(outcome);
        case LockLimit::machine:
            return machine_text(outcome);
        case LockLimit::container:
            return container_text(outcome);
        case LockLimit::pages:
            return "some of it is not mapped, or its file was cut short";
        case LockLimit::system:
            return std::system_category().message(outcome.error);
    }
    return "";
}

}  // namespace

std::string to_text(const LockOutcome& outcome) {
    if (outcome) return "";
    return "tensorpool: lock " + text_of(outcome.asked_bytes) + ": locked " +
           text_of(outcome.locked_bytes) + ", the rest stays unlocked: " + reason_text(outcome);
}

}  // namespace tensorpool
