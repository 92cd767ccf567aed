// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// A face as a line describes it: in pixels of the upright picture.
struct FaceLine {
    var id: UInt32
    var box: FaceRect
    var confidence: Double
    var age: Int
    var isDetected: Bool
    var landmarks: Landmarks?

    init(_ track: FaceTrack, _ map: UprightMap, now: Int) {
        id = track.id
        box = map.upright(track.shown)
        confidence = track.confidence
        age = track.age
        isDetected = track.lastSeenFrame == now
        landmarks = track.landmarks?.mapped(map.upright)
    }
}

/// Writes a line of JSON for each frame: its faces in pixels of the upright picture. Allocates nothing once open.
final class FaceLines {
    private let out: LineWriter
    /// The longest line: 64 faces of at most 300 bytes, five times as many regions, and the text around them.
    private static let longestLine = 48 << 10

    /// [control thread] See ``LineWriter``.
    init(path: String, _ files: RunFiles, as stage: String, unless isEnded: () -> Bool = { false }) throws {
        out = try LineWriter(path: path, files, as: stage, unless: isEnded)
    }

    /// [stage thread] Writes the line of one frame.
    ///
    /// - Parameters:
    ///   - mode: How privacy treated it; nil without privacy.
    ///   - covered: Regions that are covered, upright, in pixels.
    ///   - faces: The faces that are shown.
    func write(
        frame: UInt64, pts: MediaTime, isSearched: Bool, mode: PrivacyGuard.Mode?, faces: some Sequence<FaceLine>,
        covered: some Collection<FaceRect>
    ) throws {
        try out.reserve(Self.longestLine)
        out.put("{\"frame\":")
        out.put(whole: Int64(clamping: frame))
        out.put(",\"pts\":")
        out.put(pts.seconds, places: 6)
        out.put(",\"searched\":")
        out.put(isSearched ? "true" : "false")
        if let mode {
            out.put(",\"mode\":\"")
            out.put(mode.staticName)
            out.put("\",\"covered\":[")
            for (index, region) in covered.prefix(PrivacyGuard.mostRegions).enumerated() {
                if index > 0 { out.put(",") }
                out.put(region)
            }
            out.put("]")
        }
        out.put(",\"faces\":[")
        var isFirst = true
        for face in faces {
            if !isFirst { out.put(",") }
            isFirst = false
            out.put("{\"id\":")
            out.put(whole: Int64(face.id))
            out.put(",\"box\":")
            out.put(face.box)
            out.put(",\"confidence\":")
            out.put(face.confidence, places: 3)
            out.put(",\"age\":")
            out.put(whole: Int64(face.age))
            out.put(",\"detected\":")
            out.put(face.isDetected ? "true" : "false")
            if let points = face.landmarks {
                out.put(",\"landmarks\":[")
                out.put(points.rightEye)
                out.put(",")
                out.put(points.leftEye)
                out.put(",")
                out.put(points.nose)
                out.put(",")
                out.put(points.rightMouth)
                out.put(",")
                out.put(points.leftMouth)
                out.put("]")
            }
            out.put("}")
        }
        out.put("]}\n")
    }

    /// [stage thread] Writes what is buffered and closes the file.
    func close() throws { try out.close() }
}

extension PrivacyGuard.Mode {
    /// The name in events and lines.
    var staticName: StaticString {
        switch self {
        case .searched: "searched"
        case .held: "held"
        case .starting: "starting"
        case .late: "late"
        case .failed: "failed"
        case .crowded: "crowded"
        }
    }
}
