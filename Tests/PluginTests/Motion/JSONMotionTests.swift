// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Testing

@testable import Motion

@Suite struct JSONMotionTests {
    private func read(_ text: String, _ units: MotionUnits = MotionUnits()) throws(MotionFault)
        -> [JSONMotion.Reading]
    {
        try JSONMotion.readings(in: Array(text.utf8)[...], units: units)
    }

    @Test func readsItsOwnShape() throws {
        let reading = try #require(
            try read(#"{"t":1.5,"gyro":[1,2,3],"accel":{"x":4,"y":5,"z":6},"attitude":[0,0,0,1]}"#).first)
        #expect(reading.stamp == 1_500_000_000 && reading.sample.time == MediaTime(seconds: 1.5))
        #expect(reading.sample.rotationRate == SIMD3(1, 2, 3) && reading.sample.acceleration == SIMD3(4, 5, 6))
        #expect(reading.sample.attitude == .identity)
        #expect(reading.sample.contents == [.rotationRate, .acceleration, .attitude])
        let alone = try #require(try read(#"{"gyro":[180,0,0]}"#, MotionUnits(rotation: .degrees)).first)
        #expect(alone.stamp == nil && abs(alone.sample.rotationRate.x - .pi) < 1e-6)
    }

    @Test func readsSensorServer() throws {
        let gyro = try read(
            #"{"accuracy":3,"timestamp":3925657519043709,"type":"android.sensor.gyroscope","values":[0.1,0.2,0.3]}"#)
        #expect(gyro.map(\.stamp) == [3_925_657_519_043_709])
        #expect(gyro.first?.sample.rotationRate == SIMD3(0.1, 0.2, 0.3))
        let turn = try read(
            #"{"timestamp":1,"type":"android.sensor.game_rotation_vector","values":[0.6,0,0]}"#)
        #expect(abs(try #require(turn.first).sample.attitude.w - 0.8) < 1e-6)
        #expect(try read(#"{"timestamp":1,"type":"android.sensor.light","values":[12]}"#).isEmpty)
    }

    /// tszheichoi/awesome-sensor-logger: a push by HTTP.
    @Test func readsSensorLogger() throws {
        let readings = try read(
            """
            {"messageId":0,"sessionId":"x","deviceId":"y","payload":[
             {"name":"accelerometer","time":1698501144401234200,"values":{"z":-0.5,"y":0.25,"x":1}},
             {"name":"gravity","time":1698501144401234200,"values":{"x":0,"y":9.5,"z":0.5}},
             {"name":"gyroscope","time":1698501144405234200,"values":{"x":1,"y":2,"z":3}},
             {"name":"orientation","time":"1698501144405234200","values":{"qx":0,"qy":0,"qz":1,"qw":0,"roll":1}},
             {"name":"battery","time":1698501144405234200,"values":{"level":1}}]}
            """)
        #expect(readings.map(\.sample.contents) == [.acceleration, .rotationRate, .attitude])
        #expect(readings[0].sample.acceleration == SIMD3(1, 9.75, 0))
        #expect(readings[0].stamp == 1_698_501_144_401_234_200 && readings[2].stamp == 1_698_501_144_405_234_200)
    }

    @Test func readsZigSim() throws {
        let readings = try read(
            #"{"device":{"name":"p"},"timestamp":"2019_01_01","sensordata":{"accel":{"x":0,"y":-1,"z":0},"gyro":{"x":1,"y":2,"z":3}}}"#
        )
        #expect(readings.map(\.stamp) == [nil])
        #expect(readings.first?.sample.acceleration.y == -9.80665)
    }

    @Test(arguments: [
        ("", "must be JSON"), ("hello", "must be JSON"), ("7", "must have JSON objects, but has a number"),
        ("{}", "must have 'gyro', 'accel' or 'attitude'"),
        (#"{"gyro":[1,2]}"#, "has '[1,2]' as 'gyro', which must be 3 numbers"),
        (#"{"gyro":[1,2,"3"]}"#, "as 'gyro', which must be 3 numbers"),
        (#"{"gyro":[1,2,1e999]}"#, "as 'gyro', which must be 3 numbers"),
        (#"{"t":"now","gyro":[1,2,3]}"#, "as 't', which must be a number of seconds"),
        (#"{"payload":3}"#, "has '3' as 'payload', which must be a list"),
        (#"{"values":[1,2,3]}"#, "has 'values', but no string 'type' that says of which sensor"),
        (
            #"{"type":"android.sensor.gyroscope","values":[1]}"#,
            "as 'values', which must be a list of at least 3 numbers"
        ),
        ("\u{1b}[2J", "must be JSON, but is '?[2J'"),
        (String(repeating: "[", count: 5000), "must be JSON"),
    ])
    func saysWhatIsWrong(text: String, fault: String) {
        let found = #expect(throws: MotionFault.self) { try read(text) }
        #expect(found?.what.contains(fault) == true, "\(found?.what ?? "")")
    }

    @Test func hostileTimesAndCountsStayWithinBounds() throws {
        let extremes = ["9223372036854775807", "-9223372036854775808", "1e400", "1e18", "null", "\"x\""]
        for time in extremes {
            for reading in (try? read(#"{"t":\#(time),"gyro":[1,2,3]}"#)) ?? [] {
                #expect(MediaTime.range.contains(reading.stamp ?? 0))
            }
            for reading in (try? read(#"[{"name":"gyroscope","time":\#(time),"values":{"x":1,"y":2,"z":3}}]"#)) ?? [] {
                #expect(MediaTime.range.contains(reading.stamp ?? 0))
            }
        }
        let many = "[" + String(repeating: #"{"gyro":[1,2,3]},"#, count: 3500) + "]"
        #expect(try read(many).count <= JSONMotion.mostReadings)
        #expect(throws: MotionFault.self) { try read(many + many) }
    }

    @Test func neverFallsOverACutText() {
        let whole = Array(
            #"{"payload":[{"name":"gyroscope","time":1698501144401234200,"values":{"x":1,"y":2,"z":3}}]}"#.utf8)
        for end in whole.indices { #expect(throws: MotionFault.self) { try JSONMotion.readings(in: whole[..<end]) } }
    }
}
