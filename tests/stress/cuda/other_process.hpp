#pragma once

namespace tensorpool::stress::cuda {

/// The bytes of a shared block before and after another process used it.
inline constexpr unsigned char byte_of_owner = 5;
inline constexpr unsigned char byte_of_other = 9;

/// Runs in another process: receives a block over the socket, opens it, checks that it is filled
/// with `byte_of_owner`, fills it with `byte_of_other`, and closes it. Returns 0 if all of that
/// worked; otherwise it says why on stderr.
int use_shared_block(int socket);

}  // namespace tensorpool::stress::cuda
