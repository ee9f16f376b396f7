//! Published test vectors: an oracle that does not depend on this crate or its libraries.

mod common;

use common::{Arg, Called, RESIZE, hex, method, number, with_key};
use std::sync::Arc;
use weir_extern_api::{Object, PayloadAccess};
use weir_ir::Bits;

const OUT_STATUS: Arg<'_> = Arg::Out(8);

fn aead(object: &Arc<dyn Object>, name: &str, nonce: &[u8], aad: &[u8], payload: &[u8]) -> Called {
    let nonce = Arg::In(96, number(nonce));
    method(
        object,
        name,
        &[RESIZE, Arg::In(32, 0), nonce, Arg::Bytes(aad), OUT_STATUS],
        payload,
    )
}

fn check_aead(type_name: &str, [key, nonce, aad, plain, sealed]: [&str; 5]) {
    let object = with_key(type_name, &hex(key));
    let (nonce, aad, plain, sealed) = (hex(nonce), hex(aad), hex(plain), hex(sealed));
    assert_eq!(aead(&object, "seal", &nonce, &aad, &plain).ok(), sealed, "{key}");
    assert_eq!(aead(&object, "open", &nonce, &aad, &sealed).ok(), plain, "{key}");
}

const GCM_TEXT: &str = "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72\
                        1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b391aafd255";
const GCM_128: &str = "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e\
                       21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091473f5985";
const GCM_256: &str = "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa\
                       8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662898015ad";
const GCM_KEY: &str = "feffe9928665731c6d6a8f9467308308";
const GCM_NONCE: &str = "cafebabefacedbaddecaf888";
const GCM_AAD: &str = "feedfacedeadbeeffeedfacedeadbeefabaddad2";

/// McGrew and Viega, "The Galois/Counter Mode of Operation", test cases 1 to 4 and 13 to 16.
#[test]
fn aes_gcm() {
    let of = |key: &str, nonce: &str, aad: &str, plain: &str, text: &str, tag: &str| {
        check_aead("aes_gcm", [key, nonce, aad, plain, &format!("{text}{tag}")]);
    };
    let (zero, nonce, key_256) = ("00".repeat(16), "00".repeat(12), GCM_KEY.repeat(2));
    let zero_256 = zero.repeat(2);
    of(&zero, &nonce, "", "", "", "58e2fccefa7e3061367f1d57a4e7455a");
    of(
        &zero,
        &nonce,
        "",
        &zero,
        "0388dace60b6a392f328c2b971b2fe78",
        "ab6e47d42cec13bdf53a67b21257bddf",
    );
    of(
        GCM_KEY,
        GCM_NONCE,
        "",
        GCM_TEXT,
        GCM_128,
        "4d5c2af327cd64a62cf35abd2ba6fab4",
    );
    of(
        GCM_KEY,
        GCM_NONCE,
        GCM_AAD,
        &GCM_TEXT[..120],
        &GCM_128[..120],
        "5bc94fbc3221a5db94fae95ae7121a47",
    );
    of(&zero_256, &nonce, "", "", "", "530f8afbc74536b9a963b4f1c4cb738b");
    of(
        &zero_256,
        &nonce,
        "",
        &zero,
        "cea7403d4d606b6e074ec5d3baf39d18",
        "d0d1c8a799996bf0265b98b5d48ab919",
    );
    of(
        &key_256,
        GCM_NONCE,
        "",
        GCM_TEXT,
        GCM_256,
        "b094dac5d93471bdec1a502270e3cc6c",
    );
    of(
        &key_256,
        GCM_NONCE,
        GCM_AAD,
        &GCM_TEXT[..120],
        &GCM_256[..120],
        "76fc6ece0f4e1768cddf8853bb2d551b",
    );
}

/// RFC 8439, 2.8.2.
#[test]
fn chacha20_poly1305() {
    let plain: String = "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, \
                         sunscreen would be it."
        .bytes()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let sealed = "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d6\
                  3dbea45e8ca9671282fafb69da92728b1a71de0a9e060b2905d6a5b67ecd3b36\
                  92ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc\
                  3ff4def08e4b7a9de576d26586cec64b6116 1ae10b594f09e26a7e902ecbd0600691";
    let key = "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f";
    check_aead(
        "chacha20_poly1305",
        [
            key,
            "070000004041424344454647",
            "50515253c0c1c2c3c4c5c6c7",
            &plain,
            sealed,
        ],
    );
}

fn esp(object: &Arc<dyn Object>, name: &str, [spi, sequence]: [u128; 2], iv: &str, payload: &[u8]) -> Called {
    let iv = hex(iv);
    let next_header = if name.starts_with("seal") {
        Arg::In(8, 1)
    } else {
        Arg::Out(8)
    };
    let arguments = [
        RESIZE,
        Arg::In(32, 0),
        Arg::In(32, spi),
        Arg::In(32, sequence),
        Arg::In(iv.len() as u32 * 8, number(&iv)),
        next_header,
        OUT_STATUS,
    ];
    method(object, name, &arguments, payload)
}

/// draft-mcgrew-gcm-test-01: a DNS query of 62 bytes, with next header 1.
#[test]
fn esp_gcm() {
    let object = with_key("esp_gcm", &hex(&format!("{GCM_KEY}cafebabe")));
    let plain = hex("4500003e698f000080114dccc0a80102c0a801010a980035002a2343b2d00100\
                     0001000000000000037369700963796265726369747902646b0000010001");
    let sealed = hex("deb22cd9b07c72c16e3a65beeb8df304a5a5897d33ae530f1ba76d5d114d2a5c\
                      3de81827c10e9a4f51330d0eec416642cfbb85a5b47e48a4ec3b9ba95d918bd1\
                      83b70d3aa8bc6ee4c309e9d85a41ad4a");
    let association = [0xa5f8, 10];
    let iv = "facedbaddecaf888";
    assert_eq!(esp(&object, "seal", association, iv, &plain).ok(), sealed);
    let opened = esp(&object, "open", association, iv, &sealed);
    assert_eq!(opened.outputs[0], Bits::new(8, 1));
    assert_eq!(opened.ok(), plain);
}

/// RFC 3602, 4: the ciphertext without the block that padding adds, and without a tag.
#[test]
fn aes_cbc() {
    let bytes = |range: std::ops::Range<u8>| range.collect::<Vec<u8>>();
    for (key, iv, plain, cipher) in [
        (
            "06a9214036b8a15b512e03d534120006",
            "3dafba429d9eb430b422da802c9fac41",
            b"Single block msg".to_vec(),
            "e353779c1079aeb82708942dbe77181a",
        ),
        (
            "c286696d887c9aa0611bbb3e2025a45a",
            "562e17996d093d28ddb3ba695a2e6f58",
            bytes(0..32),
            "d296cd94c2cccf8a3a863028b5e1dc0a7586602d253cfff91b8266bea6d61ab1",
        ),
        (
            "6c3ea0477630ce21a2ce334aa746c2cd",
            "c782dc4c098c66cbd9cd27d825682c81",
            b"This is a 48-byte message (exactly 3 AES blocks)".to_vec(),
            "d0a02b3836451753d493665d33f0e8862dea54cdb293abc7506939276772f8d5\
             021c19216bad525c8579695d83ba2684",
        ),
        (
            "56e47a38c5598974bc46903dba290349",
            "8ce82eefbea0da3c44699ed7db51b7d9",
            bytes(0xa0..0xe0),
            "c30e32ffedc0774e6aff6af0869f71aa0f3af07a9a31a9c684db207eb0ef8e4e\
             35907aa632c3ffdf868bb7b29d3d46ad83ce9f9a102ee99d49a53e87f4c3da55",
        ),
    ] {
        let object = with_key("aes_cbc_hmac", &hex(&format!("{key}{}", "40".repeat(32))));
        let arguments = [
            RESIZE,
            Arg::In(32, 0),
            Arg::In(128, number(&hex(iv))),
            Arg::Bytes(&[]),
            OUT_STATUS,
        ];
        let sealed = method(&object, "seal", &arguments, &plain).ok();
        assert_eq!(sealed[..plain.len()], hex(cipher));
        assert_eq!(sealed.len(), plain.len() + 16 + 16);
    }
}

/// RFC 3602, 4, case 5: a ping in transport mode, and its tag by RFC 4868, which here is that of
/// the method `compute` over the same bytes.
#[test]
fn esp_with_aes_cbc() {
    let (key, mac) = ("90d382b410eeba7ad938c46cec1a82bf", "40".repeat(32));
    let iv = "e96e8c08ab465763fd098d45dd3ff893";
    let plain = hex("08000ebda70a00008e9c083db95b0700\
                     08090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f2021222324252627\
                     28292a2b2c2d2e2f3031323334353637");
    let cipher = "f663c25d325c18c6a9453e194e120849a4870b66cc6b9965330013b4898dc856\
                  a4699e523a55db080b59ec3a8e4b7e52775b07d1db34ed9c538ab50c551b874a\
                  a269add047ad2d5913ac19b7cfbad4a6";
    let object = with_key("aes_cbc_hmac", &hex(&format!("{key}{mac}")));
    let sealed = esp(&object, "seal_esp", [0x4321, 1], iv, &plain).ok();
    assert_eq!(sealed[..sealed.len() - 16], hex(cipher));

    let covered = hex(&format!("0000432100000001{iv}{cipher}"));
    let tag = hmac(&hex(&mac), "compute", &covered).to_bytes();
    assert_eq!(sealed[sealed.len() - 16..], tag[..16]);

    let opened = esp(&object, "open_esp", [0x4321, 1], iv, &sealed);
    assert_eq!(opened.outputs[0], Bits::new(8, 1));
    assert_eq!(opened.ok(), plain);
}

/// Over fields, or over the payload.
fn keyed(type_name: &str, key: &[u8], name: &str, data: &[u8], width: u32) -> Bits {
    let object = with_key(type_name, key);
    let payload = Arg::Payload(PayloadAccess::Read);
    let called = match name {
        "compute" => method(
            &object,
            name,
            &[Arg::In(32, 0), Arg::Bytes(data), Arg::Out(width), OUT_STATUS],
            b"x",
        ),
        _ => method(
            &object,
            name,
            &[payload, Arg::In(32, 0), Arg::Out(width), OUT_STATUS],
            data,
        ),
    };
    assert_eq!(called.outputs[1], Bits::zero(8));
    called.outputs[0].clone()
}

fn hmac(key: &[u8], name: &str, data: &[u8]) -> Bits {
    keyed("hmac_sha256", key, name, data, 256)
}

/// RFC 4231, cases 1 to 4, 6 and 7.
#[test]
fn hmac_sha256() {
    let long_key = [0xaa; 131];
    let counted: Vec<u8> = (1..=25).collect();
    let both = b"This is a test using a larger than block-size key and a larger than block-size data. \
                 The key needs to be hashed before being used by the HMAC algorithm.";
    for (key, data, tag) in [
        (
            &[0x0b; 20][..],
            &b"Hi There"[..],
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
        ),
        (
            b"Jefe",
            b"what do ya want for nothing?",
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        ),
        (
            &[0xaa; 20],
            &[0xdd; 50],
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe",
        ),
        (
            &counted,
            &[0xcd; 50],
            "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b",
        ),
        (
            &long_key,
            b"Test Using Larger Than Block-Size Key - Hash Key First",
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
        ),
        (
            &long_key,
            both,
            "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2",
        ),
    ] {
        let tag = Bits::from_bytes(256, &hex(tag));
        assert_eq!(hmac(key, "compute", data), tag);
        assert_eq!(hmac(key, "compute_payload", data), tag);
    }
}

/// Aumasson and Bernstein, "SipHash: a fast short-input PRF": appendix A, and the first of the
/// vectors of its reference implementation.
#[test]
fn siphash() {
    let key: Vec<u8> = (0..16).collect();
    let data: Vec<u8> = (0..15).collect();
    for (length, hash) in [
        (0, 0x726f_db47_dd0e_0e31),
        (1, 0x74f8_39c5_93dc_67fd),
        (2, 0x0d6c_8009_d9a9_4f5a),
        (3, 0x8567_6696_d7fb_7e2d),
        (4, 0xcf27_94e0_2771_87b7),
        (5, 0x1876_5564_cd99_a68d),
        (6, 0xcbc9_466e_58fe_e3ce),
        (7, 0xab02_00f5_8b01_d137),
        (15, 0xa129_ca61_49be_45e5),
    ] {
        for name in ["compute", "compute_payload"] {
            assert_eq!(keyed("siphash", &key, name, &data[..length], 64), Bits::new(64, hash));
        }
    }
}
