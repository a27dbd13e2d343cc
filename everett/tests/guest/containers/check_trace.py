"""Checks a trace against the schema of Perfetto, and prints what it has."""

import sys
from collections import Counter
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

trace = Trace()
trace.ParseFromString(open(sys.argv[1], "rb").read())

def unknown(message):
    from google.protobuf.unknown_fields import UnknownFieldSet
    assert len(UnknownFieldSet(message)) == 0, message
    for field, value in message.ListFields():
        if field.message_type:
            for one in value if field.is_repeated else [value]:
                unknown(one)

tracks, depth, flows, ended, names = {}, Counter(), set(), set(), Counter()
events = []
for packet in trace.packet:
    unknown(packet)
    assert packet.trusted_packet_sequence_id
    if packet.HasField("track_descriptor"):
        track = packet.track_descriptor
        assert track.uuid not in tracks and (not track.parent_uuid or track.parent_uuid in tracks)
        tracks[track.uuid] = track
    else:
        event = packet.track_event
        assert event.track_uuid in tracks and packet.HasField("timestamp")
        events.append((packet.timestamp, event))
events.sort(key=lambda event: event[0])
for time, event in events:
    kind, track = event.type, event.track_uuid
    assert kind in (TrackEvent.TYPE_SLICE_BEGIN, TrackEvent.TYPE_SLICE_END, TrackEvent.TYPE_INSTANT)
    flows.update(event.flow_ids)
    ended.update(event.terminating_flow_ids)
    if kind == TrackEvent.TYPE_SLICE_END:
        depth[track] -= 1
        assert depth[track] >= 0, tracks[track]
        continue
    assert event.name and event.categories
    names[event.categories[0] + " " + event.name.split(" ")[0]] += 1
    if kind == TrackEvent.TYPE_SLICE_BEGIN:
        assert depth[track] == 0, (time, event, tracks[track])
        depth[track] += 1
assert ended <= flows, ended - flows
print(len(events), "events")
print("processes", *sorted(t.process.process_name for t in tracks.values() if t.HasField("process")))
print("threads", *sorted(t.thread.thread_name for t in tracks.values() if t.HasField("thread")))
print("flows", len(ended))
for name, count in sorted(names.items()):
    print("count", name, count)
