//! The built-in models, each a function that builds its network operator by operator.
//!
//! Here are their names and the shapes that they take; the modules below hold the networks, a family each.

mod bert;
mod blocks;
mod densenet;
mod gpt2;
mod inception;
mod lenet;
mod mobilenet;
mod resnet;
mod shufflenet;
mod squeezenet;
mod swin;
mod transformer;
mod vgg;

use haversack_devices::text::nearest;

use crate::error::WorkloadError;
use crate::network::Network;

/// The largest side of an image, so that no count overflows.
const LARGEST_SIDE: u64 = 8192;
/// The most channels of an image.
const MOST_CHANNELS: u64 = 1024;

/// What a builder of a network yields.
type Built<T = ()> = Result<T, WorkloadError>;

/// What one sample of a model is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sample {
    /// An image.
    Image {
        /// The model's own channels, height and width.
        own: [u64; 3],
    },
    /// A sequence of token ids.
    Tokens {
        /// The model's own length.
        own: [u64; 1],
        /// The fewest tokens that it takes.
        least: u64,
        /// The most tokens: the positions that it has.
        most: u64,
    },
}

impl Sample {
    /// The model's own shape.
    pub const fn own(&self) -> &[u64] {
        match self {
            Self::Image { own } => own,
            Self::Tokens { own, .. } => own,
        }
    }

    fn accepts(&self, shape: &[u64]) -> bool {
        match (self, shape) {
            (Self::Image { .. }, &[channels, height, width]) => {
                let side = 1..=LARGEST_SIDE;
                (1..=MOST_CHANNELS).contains(&channels) && side.contains(&height) && side.contains(&width)
            }
            (Self::Tokens { least, most, .. }, &[tokens]) => (*least..=*most).contains(&tokens),
            _ => false,
        }
    }

    /// What it takes, for people.
    fn takes(&self) -> String {
        let own = dimensions(self.own());
        match self {
            Self::Image { .. } => {
                format!("channels x height x width, such as its own {own}, with sides up to {LARGEST_SIDE}")
            }
            Self::Tokens { least, most, .. } => format!("a number of tokens from {least} to {most}; its own is {own}"),
        }
    }
}

/// A built-in model.
pub struct Model {
    /// Its id on the command line.
    pub id: &'static str,
    /// One line for people, with the source of its definition.
    pub about: &'static str,
    /// What it is trained on.
    pub sample: Sample,
    build: Build,
}

type Build = fn(&mut Network, &[u64]) -> Built;

const fn image(id: &'static str, about: &'static str, own: [u64; 3], build: Build) -> Model {
    Model { id, about, sample: Sample::Image { own }, build }
}

const fn text(id: &'static str, about: &'static str, tokens: u64, build: Build) -> Model {
    Model { id, about, sample: Sample::Tokens { own: [tokens], least: 1, most: 512 }, build }
}

const IMAGENET: [u64; 3] = [3, 224, 224];
const CIFAR: [u64; 3] = [3, 32, 32];

/// All built-in models, in the order in which they are listed.
pub const MODELS: &[Model] = &[
    image("lenet5", "LeNet-5 with ReLU and max-pooling, 62 classes (LeCun et al., 1998)", [1, 28, 28], lenet::lenet5),
    image("resnet18", "ResNet-18 as torchvision builds it (He et al., CVPR 2016)", IMAGENET, |n, s| {
        resnet::build(n, s, &resnet::RESNET18)
    }),
    image("resnet18-cifar", "ResNet-18 with a 3x3 stem, 10 classes (He et al., CVPR 2016)", CIFAR, |n, s| {
        resnet::build(n, s, &resnet::RESNET18_CIFAR)
    }),
    image("resnet34", "ResNet-34 as torchvision builds it (He et al., CVPR 2016)", IMAGENET, |n, s| {
        resnet::build(n, s, &resnet::RESNET34)
    }),
    image("resnet34-cifar", "ResNet-34 with a 3x3 stem, 10 classes (He et al., CVPR 2016)", CIFAR, |n, s| {
        resnet::build(n, s, &resnet::RESNET34_CIFAR)
    }),
    image("resnet50", "ResNet-50 as torchvision builds it (He et al., CVPR 2016)", IMAGENET, |n, s| {
        resnet::build(n, s, &resnet::RESNET50)
    }),
    image(
        "densenet121",
        "DenseNet-121, not memory-efficient (Huang et al., CVPR 2017)",
        IMAGENET,
        densenet::densenet121,
    ),
    image("mobilenetv2", "MobileNetV2 as torchvision builds it (Sandler et al., CVPR 2018)", IMAGENET, |n, s| {
        mobilenet::build(n, s, &mobilenet::MOBILENET_V2)
    }),
    image("shufflenetv2", "ShuffleNet V2 x1.0 (Ma et al., ECCV 2018)", IMAGENET, shufflenet::shufflenet_v2),
    image("squeezenet1-1", "SqueezeNet 1.1 (Iandola et al., 2016)", IMAGENET, squeezenet::squeezenet1_1),
    image("vgg11", "VGG-11 as torchvision builds it (Simonyan and Zisserman, ICLR 2015)", IMAGENET, |n, s| {
        vgg::imagenet(n, s, vgg::VGG11)
    }),
    image("vgg16", "VGG-16 as torchvision builds it (Simonyan and Zisserman, ICLR 2015)", IMAGENET, |n, s| {
        vgg::imagenet(n, s, vgg::VGG16)
    }),
    image("vgg19", "VGG-19 as torchvision builds it (Simonyan and Zisserman, ICLR 2015)", IMAGENET, |n, s| {
        vgg::imagenet(n, s, vgg::VGG19)
    }),
    image("vgg11-cifar", "VGG-11, one dense layer, 10 classes (Simonyan and Zisserman, ICLR 2015)", CIFAR, |n, s| {
        vgg::cifar(n, s, vgg::VGG11, false)
    }),
    image("vgg11-cifar-bn", "vgg11-cifar with batch normalisation (Ioffe and Szegedy, ICML 2015)", CIFAR, |n, s| {
        vgg::cifar(n, s, vgg::VGG11, true)
    }),
    image("vgg16-cifar", "VGG-16, one dense layer, 10 classes (Simonyan and Zisserman, ICLR 2015)", CIFAR, |n, s| {
        vgg::cifar(n, s, vgg::VGG16, false)
    }),
    image("vgg16-cifar-bn", "vgg16-cifar with batch normalisation (Ioffe and Szegedy, ICML 2015)", CIFAR, |n, s| {
        vgg::cifar(n, s, vgg::VGG16, true)
    }),
    image(
        "inceptionv3",
        "Inception v3 without auxiliary classifier (Szegedy et al., CVPR 2016)",
        [3, 299, 299],
        inception::inception_v3,
    ),
    image("swin-t", "Swin-T, stochastic depth 0.2 (Liu et al., ICCV 2021)", IMAGENET, swin::swin_t),
    text("bert-small", "BERT-small, 512 tokens, 2 labels (Devlin et al., 2019; Turc et al., 2019)", 512, |n, s| {
        bert::classifier(n, s, &bert::BERT_SMALL)
    }),
    text("bert-small-s64", "bert-small with 64 tokens (Turc et al., 2019)", 64, |n, s| {
        bert::classifier(n, s, &bert::BERT_SMALL)
    }),
    text("bert-small-mlm", "bert-small that fills in every token (Devlin et al., NAACL 2019)", 512, |n, s| {
        bert::masked_language_model(n, s, &bert::BERT_SMALL)
    }),
    text("bert-small-s64-mlm", "bert-small-mlm with 64 tokens (Devlin et al., NAACL 2019)", 64, |n, s| {
        bert::masked_language_model(n, s, &bert::BERT_SMALL)
    }),
    text("bert-base", "BERT-base, 128 tokens, 2 labels (Devlin et al., NAACL 2019)", 128, |n, s| {
        bert::classifier(n, s, &bert::BERT_BASE)
    }),
    text("bert-base-s512", "bert-base with 512 tokens (Devlin et al., NAACL 2019)", 512, |n, s| {
        bert::classifier(n, s, &bert::BERT_BASE)
    }),
    text("bert-base-mlm", "bert-base that fills in every token (Devlin et al., NAACL 2019)", 128, |n, s| {
        bert::masked_language_model(n, s, &bert::BERT_BASE)
    }),
    text("bert-base-s512-mlm", "bert-base-mlm with 512 tokens (Devlin et al., NAACL 2019)", 512, |n, s| {
        bert::masked_language_model(n, s, &bert::BERT_BASE)
    }),
    text(
        "albert-base",
        "ALBERT-base v2, 128 tokens, 2 labels, one shared layer (Lan et al., ICLR 2020)",
        128,
        |n, s| bert::classifier(n, s, &bert::ALBERT_BASE),
    ),
    text("albert-base-mlm", "albert-base that fills in every token (Lan et al., ICLR 2020)", 128, |n, s| {
        bert::masked_language_model(n, s, &bert::ALBERT_BASE)
    }),
    text(
        "roberta-base-lora",
        "RoBERTa-base, 128 tokens, LoRA of rank 8 (Liu et al., 2019; Hu et al., ICLR 2022)",
        128,
        |n, s| bert::adapted_classifier(n, s, &bert::ROBERTA_BASE_LORA),
    ),
    text("roberta-base-lora-s512", "roberta-base-lora with 512 tokens (Hu et al., ICLR 2022)", 512, |n, s| {
        bert::adapted_classifier(n, s, &bert::ROBERTA_BASE_LORA)
    }),
    Model {
        id: "gpt2-medium-lora",
        about: "GPT-2 medium, 512 tokens, LoRA of rank 4 (Radford et al., 2019; Hu et al., ICLR 2022)",
        sample: Sample::Tokens { own: [512], least: 2, most: gpt2::POSITIONS },
        build: gpt2::gpt2_medium_lora,
    },
    image("resnet8-cifar", "ResNet of 8 layers for CIFAR, projections (He et al., CVPR 2016, 4.2)", CIFAR, |n, s| {
        resnet::build(n, s, &resnet::RESNET8_CIFAR)
    }),
    image("resnet20-cifar", "ResNet of 20 layers for CIFAR, projections (He et al., CVPR 2016, 4.2)", CIFAR, |n, s| {
        resnet::build(n, s, &resnet::RESNET20_CIFAR)
    }),
    image(
        "mobilenetv2-slim",
        "MobileNetV2 at a quarter of the width for CIFAR (Sandler et al., 2018)",
        CIFAR,
        |n, s| mobilenet::build(n, s, &mobilenet::SLIM),
    ),
    image(
        "vgg-small",
        "Six normalised convolutions, 32 to 128 channels (after Simonyan and Zisserman)",
        CIFAR,
        vgg::small,
    ),
    Model {
        id: "transformer2-lora",
        about: "Two layers of 64 features, 32 tokens, LoRA of rank 4 (after Hu et al., ICLR 2022)",
        sample: Sample::Tokens { own: [32], least: 1, most: bert::TRANSFORMER2_LORA.positions },
        build: |n, s| bert::adapted_classifier(n, s, &bert::TRANSFORMER2_LORA),
    },
];

/// Builds the model `id` for samples of shape `input`, or of the model's own if none is given.
///
/// The first layer takes as many channels as the input has; layers after a flattening take as many
/// features as are left.
///
/// # Errors
/// An unknown name, or an input that the model cannot take.
pub fn build(id: &str, input: Option<&[u64]>) -> Result<Network, WorkloadError> {
    let Some(model) = MODELS.iter().find(|model| model.id == id) else {
        return Err(WorkloadError::UnknownModel {
            name: id.to_owned(),
            nearest: nearest(id, MODELS.iter().map(|model| model.id)).map(str::to_owned),
        });
    };
    let shape = input.unwrap_or(model.sample.own());
    let refuse = |reason: &str| WorkloadError::Input {
        model: id.to_owned(),
        message: format!("an input of {} {reason}; it takes {}", dimensions(shape), model.sample.takes()),
    };
    if !model.sample.accepts(shape) {
        return Err(refuse("does not fit"));
    }
    let mut network = Network::new(id);
    match (model.build)(&mut network, shape) {
        Ok(()) => Ok(network),
        // With the right rank, only a window that is larger than what is left can fail.
        Err(WorkloadError::Shape { module, .. }) => Err(refuse(&format!("is too small for {module}"))),
        Err(other) => Err(other),
    }
}

fn dimensions(shape: &[u64]) -> String {
    shape.iter().map(u64::to_string).collect::<Vec<_>>().join("x")
}
