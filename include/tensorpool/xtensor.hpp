#pragma once

/// @file
/// Makes xtensor take its memory from the global pool.
///
/// After this header, the elements of every xt::xarray and xt::xtensor, temporaries of expressions
/// included, come from the global pool, each array at a multiple of 64 bytes. It must precede every
/// header of xtensor, in every source of a program that uses xtensor, because it changes the types
/// of arrays. The compiler option `-include tensorpool/xtensor.hpp` does that for all of them.
///
/// Arrays throw AllocationError if the pool cannot meet a request, and are then unchanged. Any
/// thread may use them. Shapes and strides of more than four dimensions still come from `new`.
///
/// A defect of xtensor 0.24 affects programs in C++20: with gcc it takes the wrong type for
/// `xt::eval`, and for temporaries of views, of an xt::xarray. Compile with -fno-new-ttp-matching
/// to avoid that (its xexpression_traits.hpp checks for C++17 and no later standard).
///
/// Without this header, a single type may use a pool too:
/// `xt::xarray<float, xt::layout_type::row_major, tensorpool::Allocator<float>>`.

#ifdef XTENSOR_CONFIG_HPP
#error "tensorpool: xtensor was included before <tensorpool/xtensor.hpp>, expected after it"
#endif
#ifdef XTENSOR_DEFAULT_ALLOCATOR
#error \
    "tensorpool: XTENSOR_DEFAULT_ALLOCATOR is set already, expected <tensorpool/xtensor.hpp> to set it"
#endif

#include <tensorpool/allocator.hpp>

/// The allocator of xtensor's arrays of T.
#define XTENSOR_DEFAULT_ALLOCATOR(T) tensorpool::Allocator<T>

#include <xtensor/xtensor_config.hpp>
