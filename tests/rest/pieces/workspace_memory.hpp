#pragma once

#include <cstddef>
#include <memory>
#include <new>

#include "rest/pieces/piece_codec.hpp"

namespace tensorpool::stashing {

/// A workspace with memory of its own.
class OwnedWorkspace {
public:
    explicit OwnedWorkspace(std::size_t piece_bytes)
        : bytes_(PieceWorkspace::bytes_for(piece_bytes)),
          memory_(static_cast<std::byte*>(
              ::operator new(bytes_, std::align_val_t(PieceWorkspace::alignment)))),
          workspace_({memory_.get(), bytes_}, piece_bytes) {}

    PieceWorkspace& operator*() noexcept { return workspace_; }

private:
    struct Free {
        void operator()(std::byte* memory) const noexcept {
            ::operator delete(memory, std::align_val_t(PieceWorkspace::alignment));
        }
    };

    std::size_t bytes_;
    std::unique_ptr<std::byte, Free> memory_;
    PieceWorkspace workspace_;
};

}  // namespace tensorpool::stashing
