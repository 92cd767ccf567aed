// SPDX-License-Identifier: Apache-2.0

/// A model that a stage uses and framehost does not ship: its purpose, its publisher, and the hash of its file.
struct KnownModel {
    var name: String
    var purpose: String
    var licence: String
    var fileName: String
    /// Other names that stages look for in a data folder.
    var otherNames: [String]
    var byteCount: Int
    /// Lower-case hexadecimal.
    var sha256: String
    /// The publisher's address, pinned to a commit, so that its contents never change.
    var url: String

    /// The hashes are those of the publisher's Git LFS objects.
    static let all = [
        yunet(
            "2022mar", "OpenCV 4.5.4 to 4.7 (Debian 12)", 345_478,
            "50ef07f702a31741ca46a4c0d947773b64143b9362780237bf0d427d6c79bab7",
            commit: "c71f7a40d34cd3830086ee9b7a01174e013ad42a"),
        yunet(
            "2023mar", "OpenCV 4.8 and later (Debian 13)", 232_589,
            "8f2383e4dd3cfbb4553ea8718107fc0423210dc964f9f4280604804ed2552fa4",
            commit: "82b38c8f98e7b52aa171400f3e4c722352d0669f"),
    ]

    private static func yunet(_ date: String, _ library: String, _ byteCount: Int, _ sha256: String, commit: String)
        -> KnownModel
    {
        let file = "face_detection_yunet_\(date).onnx"
        return KnownModel(
            name: "yunet-\(date)", purpose: "YuNet finds faces for face-effect with \(library)",
            licence: "MIT, Copyright (c) 2020 Shiqi Yu",
            fileName: file, otherNames: ["yunet.onnx"], byteCount: byteCount, sha256: sha256,
            url:
                "https://media.githubusercontent.com/media/opencv/opencv_zoo/\(commit)/models/face_detection_yunet/\(file)"
        )
    }
}
