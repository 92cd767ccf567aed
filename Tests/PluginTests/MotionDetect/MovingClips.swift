// SPDX-License-Identifier: Apache-2.0

import Foundation
import MovingScenes
import Testing

/// Writes the scenes as files for Tests/Soak/motion.py, which names a folder in FRAMEHOST_MOTION_CLIPS.
@Suite(.enabled(if: ProcessInfo.processInfo.environment["FRAMEHOST_MOTION_CLIPS"] != nil))
struct MovingClips {
    @Test(arguments: MovingScene.all) func areWritten(scene: MovingScene) throws {
        let folder = try #require(ProcessInfo.processInfo.environment["FRAMEHOST_MOTION_CLIPS"])
        let (width, height, rate) = (640, 480, 15)
        let name = scene.name.replacingOccurrences(of: " ", with: "-")
        let path = "\(folder)/\(name).y4m"
        try Data("YUV4MPEG2 W\(width) H\(height) F\(rate):1 Ip A1:1 C420jpeg\n".utf8).write(to: URL(filePath: path))
        let file = try FileHandle(forWritingTo: URL(filePath: path))
        try file.seekToEnd()
        var painter = ScenePainter(scene, width: width, height: height)
        var picture = [UInt8](repeating: 128, count: width * height * 3 / 2)
        for number in 0..<Int(scene.seconds) * rate {
            picture.withUnsafeMutableBufferPointer {
                painter.draw(Double(number) / Double(rate), to: $0.baseAddress!, strideBytes: width)
            }
            try file.write(contentsOf: Data("FRAME\n".utf8) + Data(picture))
        }
        let truth = scene.truth(aspect: Float(width) / Float(height)).map {
            [$0.lowerBound, min($0.upperBound, scene.seconds)]
        }
        try JSONSerialization.data(withJSONObject: ["seconds": scene.seconds, "truth": truth])
            .write(to: URL(filePath: "\(folder)/\(name).json"))
    }
}
