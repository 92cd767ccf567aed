// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

/// What is said of a format that a running stage would get.
@Suite struct FormatChangeTests {
    private let video = VideoFormat(.i420, width: 160, height: 96, frameRate: Rational(30))

    private func words(_ before: MediaFormat, _ after: MediaFormat) -> String {
        FormatChange.words(from: [before], to: [after])
    }

    @Test func namesBothFormatsWhereTheirNamesDiffer() {
        var other = video
        other.width = 80
        #expect(words(.video(video), .video(other)) == "i420 80x96 30 fps instead of i420 160x96 30 fps")
    }

    @Test func namesWhatTheNamesOfAccessUnitsLeaveOut() {
        let before = EncodedFormat(codec: .h264, video: video)
        var after = before
        after.reorderDepth = 2
        #expect(
            words(.encoded(before), .encoded(after)) == "\(before) with B-frames over 2 pictures instead of none")
        after.framing = .lengthPrefixed
        #expect(
            words(.encoded(before), .encoded(after))
                == "\(before) with the framing lengthPrefixed instead of annexB, B-frames over 2 pictures instead of none"
        )
    }

    @Test func namesColourAndShape() {
        var after = video
        after.color.range = video.color.range == .full ? .video : .full
        after.sampleAspectRatio = Rational(4, 3)
        let said = words(.video(video), .video(after))
        #expect(said.hasPrefix("\(video) with the pixel aspect ratio "), "\(said)")
        #expect(said.contains("the colour range \(after.color.range) instead of \(video.color.range)"), "\(said)")
    }

    /// Each difference for which a stage needs a restart has a name.
    @Test func leavesNothingToGuess() {
        let base = EncodedFormat(codec: .h264, video: video)
        var others: [EncodedFormat] = []
        func add(_ change: (inout EncodedFormat) -> Void) {
            var other = base
            change(&other)
            others.append(other)
        }
        add { $0.codec = .h265 }
        add { $0.framing = .own }
        add { $0.reorderDepth = 1 }
        add { $0.video?.orientation = .right }
        add { $0.video?.frameRate = Rational(25) }
        add { $0.video?.color.matrix = 5 }
        add { $0.video?.color.transfer = 16 }
        for other in others {
            #expect(!MediaFormat.encoded(other).isAsGood(as: .encoded(base)))
            #expect(!words(.encoded(base), .encoded(other)).contains("another kind of"), "\(other)")
        }
    }
}
