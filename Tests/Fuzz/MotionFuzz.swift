// SPDX-License-Identifier: Apache-2.0

import FrameCore

@testable import Motion

/// The parsers of motion-source, of which the first byte chooses one: any bytes give samples or a sentence, and what
/// passes the gate can be given to a chain.
@c(LLVMFuzzerTestOneInput)
public func fuzzMotion(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let input = Array(UnsafeBufferPointer(start: bytes, count: count))
    guard let first = input.first else { return 0 }
    let rest = Array(input.dropFirst())
    var samples: [MotionSample] = []
    do throws(MotionFault) {
        switch first % 4 {
        case 0: try readCSV(rest, &samples)
        case 1: try readJSON(rest, &samples)
        case 2: try readGPMF(rest, &samples)
        default: try readCAMM(rest, &samples)
        }
    } catch {
        precondition(!error.what.isEmpty && error.what.unicodeScalars.allSatisfy { $0.value >= 32 }, error.what)
        precondition((0...rest.count).contains(error.offset), "a fault outside of the bytes: \(error.offset)")
    }
    give(samples)
    return 0
}

private func readCSV(_ bytes: [UInt8], _ samples: inout [MotionSample]) throws(MotionFault) {
    var parser = CSVMotion()
    for line in bytes.split(separator: 10, omittingEmptySubsequences: false) {
        if let sample = try parser.take(line) { samples.append(sample) }
    }
    precondition(parser.axes?.isMirror != true)
}

private func readJSON(_ bytes: [UInt8], _ samples: inout [MotionSample]) throws(MotionFault) {
    var clock = ClockOffset()
    for line in bytes.split(separator: 10) {
        let readings = try JSONMotion.readings(in: line)
        precondition(readings.count <= JSONMotion.mostReadings)
        for reading in readings {
            var sample = reading.sample
            if let stamp = reading.stamp {
                precondition(MediaTime.range.contains(stamp))
                _ = clock.take(stamp: stamp, arrival: 1 << 50)
                sample.time = MediaTime(nanoseconds: stamp &+ clock.offset)
            }
            samples.append(sample)
        }
    }
}

private func readGPMF(_ bytes: [UInt8], _ samples: inout [MotionSample]) throws(MotionFault) {
    var payload = GPMF.Payload()
    defer {
        precondition(payload.rotationRates.count + payload.accelerations.count <= GPMF.mostValues)
        precondition(!payload.axes.isMirror)
        for (part, values) in [
            (MotionSample.Contents.rotationRate, payload.rotationRates), (.acceleration, payload.accelerations),
        ] {
            for (index, value) in values.enumerated() {
                var sample = MotionSample(time: MediaTime(nanoseconds: Int64(index)))
                sample.contents = part
                if part == .rotationRate { sample.rotationRate = value } else { sample.acceleration = value }
                samples.append(sample)
            }
        }
    }
    try GPMF.read(bytes.span, into: &payload)
}

/// Packets of 20 bytes, of which the first four are the time.
private func readCAMM(_ bytes: [UInt8], _ samples: inout [MotionSample]) throws(MotionFault) {
    var begin = 0
    while begin < bytes.count {
        let packet = Array(bytes[begin..<min(begin + 20, bytes.count)])
        begin += 20
        let time = packet.prefix(4).reduce(Int64(0)) { $0 << 8 | Int64($1) }
        let rest = Array(packet.dropFirst(4))
        if let sample = try CAMM.sample(in: rest.span, at: MediaTime(nanoseconds: time << 30)) {
            samples.append(sample)
        }
    }
}

/// As the source does.
private func give(_ samples: [MotionSample]) {
    var merge = SensorMerge(patience: 40_000_000)
    var ready: [MotionSample] = []
    for sample in samples { merge.add(sample, into: &ready) }
    merge.end(into: &ready)
    precondition(ready.count <= samples.count, "samples were made of nothing")
    var gate = SampleGate(axes: .gyroflow)
    var last: MediaTime?
    for sample in ready {
        guard let passed = gate.pass(sample) else { continue }
        precondition(last.map { $0 < passed.time } ?? true, "a time that does not rise")
        last = passed.time
        let (rate, push, turn) = (passed.rotationRate, passed.acceleration, passed.attitude)
        precondition([rate.x, rate.y, rate.z].allSatisfy { abs($0) <= SampleGate.fastest })
        precondition([push.x, push.y, push.z].allSatisfy { abs($0) <= SampleGate.greatest })
        let length = turn.x * turn.x + turn.y * turn.y + turn.z * turn.z + turn.w * turn.w
        precondition(abs(length - 1) < 1e-3, "an attitude of length \(length)")
    }
    precondition(gate.given + gate.invalid + gate.late == ready.count, "a sample that nobody counted")
}
