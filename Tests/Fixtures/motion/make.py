#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the fixtures of the tests of motion-source: a second of motion in each format, by struct alone.

    make.py FOLDER        hero.bin, hero.mp4, hero-fast.mp4 (GPMF), camm.mov, camm-fast.mov (CAMM), and the seeds of the fuzz target

The motion: rotation rate (0.1, 0.2, 0.3 + i/1000) rad/s at sample i of 200 a second, acceleration (0, -9.81, i/100) m/s²
at sample i of 100 a second, in the axes that each format has.
"""
import os, struct, sys


def klv(key, kind, size, count, data):
    assert len(data) == size * count, (key, size, count, len(data))
    return key + struct.pack('>cBH', kind, size, count) + data + b'\0' * (-len(data) % 4)


def nest(key, data):
    return key + struct.pack('>BBH', 0, 1, len(data)) + data if len(data) < 65536 and len(data) % 4 == 0 else 1 / 0


def text(key, value):
    return klv(key, b'c', 1, len(value), value)


def gpmf(first, gyro, accel):
    """One payload; `first`: how many rates and accelerations came before. Values in the order of a HERO8: ORIN to ORIO."""
    g = b''.join(struct.pack('>3h', *(round(x * 1000) for x in v)) for v in gyro)
    a = b''.join(struct.pack('>3h', *(round(x * 400) for x in v)) for v in accel)
    common = text(b'ORIN', b'YxZ') + text(b'ORIO', b'ZXY')
    device = klv(b'DVID', b'L', 4, 1, struct.pack('>L', 1)) + text(b'DVNM', b'Hero8 Black')
    device += nest(b'STRM', klv(b'TSMP', b'L', 4, 1, struct.pack('>L', first[0] + len(gyro))) + klv(b'STMP', b'J', 8, 1, struct.pack('>Q', 0))
                   + text(b'STNM', b'Gyroscope') + text(b'SIUN', b'rad/s') + common + klv(b'SCAL', b's', 2, 1, struct.pack('>h', 1000))
                   + klv(b'GYRO', b's', 6, len(gyro), g))
    device += nest(b'STRM', klv(b'TSMP', b'L', 4, 1, struct.pack('>L', first[1] + len(accel))) + text(b'STNM', b'Accelerometer')
                   + text(b'SIUN', b'm/s\xb2') + common + klv(b'SCAL', b's', 2, 1, struct.pack('>h', 400)) + klv(b'ACCL', b's', 6, len(accel), a))
    return nest(b'DEVC', device)


def camm(kind, *values):
    return struct.pack('<HH', 0, kind) + struct.pack('<%df' % len(values), *values)


def box(kind, *data):
    data = b''.join(data)
    return struct.pack('>I', 8 + len(data)) + kind + data


def full(kind, *data):
    return box(kind, b'\0\0\0\0', *data)


MATRIX = struct.pack('>9i', 0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000)


def movie(tag, handler, scale, packets, is_fast=False, begin=None):
    """An MP4 file with one track of packets (bytes, duration in ticks); `is_fast`: with what describes them in front."""
    ftyp = box(b'ftyp', b'isom\0\0\2\0isommp42')
    body = b''.join(data for data, _ in packets)
    offsets, at = [], begin or len(ftyp) + 8
    for data, _ in packets:
        offsets.append(at)
        at += len(data)
    length = sum(ticks for _, ticks in packets)
    runs = []
    for _, ticks in packets:
        if runs and runs[-1][1] == ticks:
            runs[-1][0] += 1
        else:
            runs.append([1, ticks])
    stbl = box(b'stbl', full(b'stsd', struct.pack('>I', 1), box(tag, b'\0' * 6, struct.pack('>H', 1))),
               full(b'stts', struct.pack('>I', len(runs)), *(struct.pack('>II', *run) for run in runs)),
               full(b'stsc', struct.pack('>IIII', 1, 1, 1, 1)),
               full(b'stsz', struct.pack('>II', 0, len(packets)), *(struct.pack('>I', len(data)) for data, _ in packets)),
               full(b'stco', struct.pack('>I', len(packets)), *(struct.pack('>I', x) for x in offsets)))
    minf = box(b'minf', box(b'gmhd', full(b'gmin', struct.pack('>H3HhH', 0x40, 0x8000, 0x8000, 0x8000, 0, 0))),
               box(b'dinf', full(b'dref', struct.pack('>I', 1), struct.pack('>I4sI', 12, b'url ', 1))), stbl)
    mdia = box(b'mdia', full(b'mdhd', struct.pack('>IIIIHH', 0, 0, scale, length, 0x55c4, 0)),
               full(b'hdlr', b'\0\0\0\0meta' + b'\0' * 12 + handler + b'\0'), minf)
    tkhd = box(b'tkhd', b'\0\0\0\3', struct.pack('>IIIII', 0, 0, 1, 0, length), b'\0' * 16, MATRIX, struct.pack('>II', 0, 0))
    mvhd = full(b'mvhd', struct.pack('>IIII', 0, 0, scale, length), struct.pack('>IH', 0x10000, 0x100), b'\0' * 10, MATRIX, b'\0' * 24, struct.pack('>I', 2))
    moov = box(b'moov', mvhd, box(b'trak', tkhd, mdia))
    if is_fast and begin is None:
        return movie(tag, handler, scale, packets, True, len(ftyp) + len(moov) + 8)
    return ftyp + moov + box(b'mdat', body) if is_fast else ftyp + box(b'mdat', body) + moov


def main(folder):
    rates = [(0.1, 0.2, 0.3 + i / 1000) for i in range(200)]
    pushes = [(0, -9.81, i / 100) for i in range(100)]

    def write(name, data):
        os.makedirs(os.path.dirname(os.path.join(folder, name)) or '.', exist_ok=True)
        with open(os.path.join(folder, name), 'wb') as file:
            file.write(data)

    payloads = [gpmf((0, 0), rates[:100], pushes[:50]), gpmf((100, 50), rates[100:], pushes[50:])]
    write('hero.bin', payloads[0])
    write('hero.mp4', movie(b'gpmd', b'GoPro MET', 1000, [(data, 500) for data in payloads]))
    write('hero-fast.mp4', movie(b'gpmd', b'GoPro MET', 1000, [(data, 500) for data in payloads], is_fast=True))
    packets = []
    for i in range(200):
        packets.append((camm(2, *rates[i]), 2 if i % 2 == 0 else 5))
        if i % 2 == 0:
            packets.append((camm(3, *pushes[i // 2]), 3))
    # A rotation by 0.5 rad about z at the end, and a position, which is no motion.
    packets += [(camm(0, 0, 0, 0.5), 5), (struct.pack('<HH3d', 0, 5, 48.1, 11.5, 500), 5)]
    write('camm.mov', movie(b'camm', b'camera motion', 1000, packets))
    write('camm-fast.mov', movie(b'camm', b'camera motion', 1000, packets, is_fast=True))
    row = 't,gx,gy,gz,ax,ay,az\n' + ''.join('%.3f,%g,%g,%g,%g,%g,%g\n' % (i / 100, *rates[i], *pushes[i]) for i in range(3))
    gcsv = 'GYROFLOW IMU LOG\nversion,1.3\norientation,YxZ\ntscale,0.001\ngscale,0.01\nascale,0.5\nt,gx,gy,gz\n0,1,2,3\n5,1,2,3\n'
    json = '{"payload":[{"name":"gyroscope","time":1698501144401234200,"values":{"x":1,"y":2,"z":3}}]}\n{"t":1,"gyro":[1,2,3],"accel":[0,0,9.81],"attitude":[0,0,0,1]}\n'
    small = gpmf((0, 0), rates[:3], pushes[:2])
    write('seeds/csv', b'\0' + row.encode())
    write('seeds/gcsv', b'\0' + gcsv.encode())
    write('seeds/json', b'\1' + json.encode())
    write('seeds/gpmf', b'\2' + small)
    write('seeds/camm', b'\3' + b''.join(struct.pack('>I', i) + camm(kind, 1, 2, 3) for i, kind in enumerate((2, 3, 0))))


main(sys.argv[1])
