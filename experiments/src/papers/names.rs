//! What people call what ids name: `resnet50` is ResNet-50.

/// Words of ids, alone or joined by hyphens, each with what people call it.
const NAMES: [(&str, &str); 74] = [
    ("20news", "20News"),
    ("actnn", "ActNN"),
    ("agnews", "AG News"),
    ("albert", "ALBERT"),
    ("bert", "BERT"),
    ("bert-small", "BERT-small"),
    ("capuchin", "Capuchin"),
    ("carat", "Carat"),
    ("cifar10", "CIFAR-10"),
    ("cifar100", "CIFAR-100"),
    ("cpu", "CPU"),
    ("daf", "DAF"),
    ("densenet121", "DenseNet-121"),
    ("dga", "DGA"),
    ("dgc", "DGC"),
    ("dsp", "DSP"),
    ("elastictrainer", "ElasticTrainer"),
    ("fedhybrid", "FedHybrid"),
    ("fedprox", "FedProx"),
    ("femnist", "FEMNIST"),
    ("fixed8", "Fixed 8 Bits"),
    ("fp16", "FP16"),
    ("fp32", "FP32"),
    ("gact", "GACT"),
    ("galaxy-note20", "Galaxy Note 20"),
    ("galaxy-s10", "Galaxy S10"),
    ("gpt2-medium", "GPT-2 medium"),
    ("gpu", "GPU"),
    ("heterofl", "HeteroFL"),
    ("imagenet", "ImageNet"),
    ("inceptionv3", "InceptionV3"),
    ("infinite-cores", "infinite cores"),
    ("int8", "INT8"),
    ("iqoo-neo3", "iQOO Neo 3"),
    ("jetson-agx-orin", "Jetson AGX Orin"),
    ("jetson-agx-xavier", "Jetson AGX Xavier"),
    ("lenet", "LeNet"),
    ("lenet5", "LeNet-5"),
    ("lora", "LoRA"),
    ("mandheling", "Mandheling"),
    ("melon", "Melon"),
    ("mlp", "MLP"),
    ("mnn", "MNN"),
    ("mobilenetv2", "MobileNetV2"),
    ("niti", "NITI"),
    ("note10", "Redmi Note 10"),
    ("oort", "Oort"),
    ("op10p", "OnePlus 10 Pro"),
    ("openimg", "OpenImage"),
    ("redmagic-7", "RedMagic 7"),
    ("resnet18", "ResNet-18"),
    ("resnet34", "ResNet-34"),
    ("resnet50", "ResNet-50"),
    ("resnet8-cifar", "ResNet-8"),
    ("roberta-base", "RoBERTa-base"),
    ("rtx-3090", "RTX 3090"),
    ("s22", "Galaxy S22"),
    ("sage", "Sage"),
    ("sga", "SGA"),
    ("sgc", "SGC"),
    ("shufflenet", "ShuffleNet"),
    ("single-core", "single core"),
    ("speedup", "speed-up"),
    ("squeezenet", "SqueezeNet"),
    ("swin-t", "Swin-T"),
    ("tflite", "TFLite"),
    ("transformer2-lora", "a transformer with LoRA"),
    ("ufs", "UFS"),
    ("vgg-small", "a small VGG"),
    ("vgg11", "VGG-11"),
    ("vgg16", "VGG-16"),
    ("vgg19", "VGG-19"),
    ("xavier", "Xavier"),
    ("yogi", "Yogi"),
];

/// `id` in words: names as people write them, all else as it is, with spaces for hyphens.
pub(crate) fn spelled(id: &str) -> String {
    let mut words = String::new();
    let mut left = id;
    while !left.is_empty() {
        let known = NAMES.iter().filter(|(word, _)| {
            left.strip_prefix(word).is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
        });
        // Of two that fit, the longer one.
        if let Some((word, name)) = known.max_by_key(|(word, _)| word.len()) {
            words += name;
            left = &left[word.len()..];
        } else {
            let end = left.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(left.len());
            words += &left[..end];
            left = &left[end..];
        }
        let end = left.find(|c: char| c.is_ascii_alphanumeric()).unwrap_or(left.len());
        words += &left[..end].replace('-', " ");
        left = &left[end..];
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_name_wins_and_words_are_whole() {
        assert_eq!(spelled("resnet50-on-galaxy-s10"), "ResNet-50 on Galaxy S10");
        assert_eq!(spelled("bert-small-sage"), "BERT-small Sage");
        assert_eq!(spelled("bertha-cpus"), "bertha cpus");
        assert_eq!(spelled("bert,oort+capuchin"), "BERT,Oort+Capuchin");
        assert_eq!(spelled("rtx-3090-vs-phones"), "RTX 3090 vs phones");
        assert_eq!(spelled("émile"), "émile");
    }

    #[test]
    fn names_are_in_order() {
        assert!(NAMES.is_sorted_by_key(|(word, _)| *word));
    }
}
