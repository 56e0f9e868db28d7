"""Reads a snapshot as PyTorch's viewers do, and prints their values as JSON. Ends with an error if one
of their checks fails. Uses only Python's standard library."""

import json
import pickle
import pickletools
import sys

# The pickle operations that torch/utils/viz/MemoryViz.js supports.
KNOWN = {
    'APPEND', 'APPENDS', 'BINFLOAT', 'BINGET', 'BININT', 'BININT1', 'BININT2', 'BINPUT',
    'BINUNICODE', 'DICT', 'EMPTY_DICT', 'EMPTY_LIST', 'EMPTY_TUPLE', 'FRAME', 'LIST', 'LONG1',
    'LONG_BINGET', 'LONG_BINPUT', 'MARK', 'MEMOIZE', 'NEWFALSE', 'NEWTRUE', 'NONE', 'PROTO',
    'SETITEM', 'SETITEMS', 'SHORT_BINUNICODE', 'STOP', 'TUPLE', 'TUPLE1', 'TUPLE2', 'TUPLE3'}


def check_frames(frames):
    for frame in frames:
        assert set(frame) == {'filename', 'line', 'name'}, frame
        assert isinstance(frame['line'], int)


def check_segment(segment):
    """Checks the sums that _memory_viz.py's segsum asserts, and that blocks tile the segment."""
    address = segment['address']
    allocated = free_internal = free_external = pending = 0
    for block in segment['blocks']:
        assert block['address'] == address, (block, address)
        assert block['size'] > 0
        assert block['state'] in ('active_allocated', 'active_pending_free', 'inactive')
        check_frames(block['frames'])
        if block['state'] == 'active_allocated':
            assert 0 <= block['requested_size'] <= block['size']
            allocated += block['requested_size']
            free_internal += block['size'] - block['requested_size']
        elif block['state'] == 'active_pending_free':
            pending += block['size']
        else:
            free_external += block['size']
        address += block['size']
    assert address == segment['address'] + segment['total_size']
    assert free_internal + free_external + allocated + pending == segment['total_size']
    assert segment['active_size'] == allocated + free_internal + pending
    assert segment['requested_size'] == allocated
    assert segment['allocated_size'] == allocated + free_internal
    for key in ('device', 'stream', 'segment_type', 'segment_pool_id', 'is_expandable',
                'active_size', 'frames'):
        assert key in segment, key
    return allocated, free_internal, free_external


def pieces_without(pieces, begin, end):
    """Removes a range from ranges of addresses."""
    left = []
    for first, last in pieces:
        left += [piece for piece in ((first, min(last, begin)), (max(first, end), last))
                 if piece[0] < piece[1]]
    return left


def work_back(snapshot, device):
    """Works back from the blocks at the moment to the beginning of the history, as MemoryViz.js's
    simulate_memory does. Returns the blocks at the beginning, and the number of allocations without
    a block, which occur if blocks were cut."""
    unmatched = 0
    blocks = {block['address']: block['state'] == 'active_pending_free' for segment in snapshot['segments']
              if segment['device'] == device for block in segment['blocks']
              if block['state'] != 'inactive'}
    pieces = [(segment['address'], segment['address'] + segment['total_size'])
              for segment in snapshot['segments'] if segment['device'] == device]
    for event in reversed(snapshot['device_traces'][device]):
        address = event['addr']
        if event['action'] in ('segment_alloc', 'segment_map'):
            pieces = pieces_without(pieces, address, address + event['size'])
            continue
        if event['action'] in ('segment_free', 'segment_unmap'):
            pieces.append((address, address + event['size']))
            continue
        assert any(first <= address < last for first, last in pieces), event
        if event['action'] == 'free_completed':
            blocks[address] = True
        elif event['action'] == 'free_requested':
            assert blocks[address]
            blocks[address] = False
        elif event['action'] == 'alloc':
            unmatched += blocks.pop(address, None) is None
    return {'blocks': sorted(blocks), 'unmatched': unmatched}


def main(path):
    with open(path, 'rb') as file:
        data = file.read()
    assert data[-1:] == pickle.STOP
    unknown = {op.name for op, _, _ in pickletools.genops(data)} - KNOWN
    assert not unknown, unknown
    # Padded as trace_plot does.
    snapshot = pickle.loads(data + b'\x00' * 3)
    assert set(snapshot) == {
        'segments', 'device_traces', 'allocator_settings', 'external_annotations'}
    sums = [check_segment(segment) for segment in snapshot['segments']]
    for trace in snapshot['device_traces']:
        for event in trace:
            assert event['action'] in ('alloc', 'free_requested', 'free_completed', 'segment_alloc',
                                       'segment_free', 'segment_map', 'segment_unmap')
            assert {'addr', 'size', 'stream', 'time_us', 'frames'} <= set(event)
            check_frames(event['frames'])
    print(json.dumps({
        'allocated': sum(allocated for allocated, _, _ in sums),
        'internal': sum(internal for _, internal, _ in sums),
        'external': sum(external for _, _, external in sums),
        'segments': snapshot['segments'],
        'traces': snapshot['device_traces'],
        'before': [work_back(snapshot, device)
                   for device in range(len(snapshot['device_traces']))]}))


main(sys.argv[1])
